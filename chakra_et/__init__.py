"""Execution traces of machine-learning workloads: read, link, write, check and feed them."""

__version__ = "0.1.0"
