"""The trace of all activities, and the report of how it came to be."""
