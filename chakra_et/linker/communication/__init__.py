"""What communicates: which activities, of which group, how many bytes, with whom."""
