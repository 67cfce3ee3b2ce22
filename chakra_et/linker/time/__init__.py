"""Times of nodes: their own, what is left of them, and whose it is."""
