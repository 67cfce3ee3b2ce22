"""Which records of the two views belong together, and what encloses what."""
