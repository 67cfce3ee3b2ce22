"""Readers and writers: one folder or module for each foreign format."""
