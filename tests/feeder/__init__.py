"""Tests of the feeder, in all its forms."""
