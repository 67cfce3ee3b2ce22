"""Data: who last wrote what an operation reads."""
