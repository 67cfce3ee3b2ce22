"""Small PyTorch programs to record, and what is known of each: see `tools/record_pairs.py`."""
