"""Edits of recorded runs: what they look for in the graph, and how they cut and join it."""
