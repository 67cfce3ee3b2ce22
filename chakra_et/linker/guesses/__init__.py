"""Inferred edges held against other steps of the recording, and other ranks of the run."""
