"""Pairs of traces of any size, of a made-up run: `tools/make_pair.py` is the command.

`pair` writes the files, `model` is the training that runs, `run` the machine and the profiler that
record it, `catalog` the kernels, `text` and `values` the two formats.
"""

from .model import DIM
from .pair import PairFacts, make_pair

__all__ = ["DIM", "PairFacts", "make_pair"]
