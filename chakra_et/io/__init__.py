"""Bytes in and out: compression, kinds of files, long JSON arrays, atomic output."""
