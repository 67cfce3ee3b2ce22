"""Who waits for whom: one module for each kind of edge."""
