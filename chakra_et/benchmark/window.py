"""Which part of a recording runs: some of its steps, or what an annotation encloses."""

from __future__ import annotations

import numpy as np

from chakra_et.benchmark.host_tree import HostTree
from chakra_et.columns import Mask
from chakra_et.errors import ChakraError
from chakra_et.graph.intervals import inside, union
from chakra_et.linker.window.cut import Window


def nodes_in(tree: HostTree, wanted: Window | None) -> Mask:
    """The nodes in a window: by times on all threads, else what its annotations have called.

    Without a window these are all. Raises ChakraError where no annotation is one of it.
    """
    nodes = tree.trace.nodes
    if wanted is None:
        return np.ones(len(nodes), np.bool_)
    named = np.array([wanted.chosen(name) for name in nodes.names] or [False])
    chosen = named[nodes.name_code]
    if not chosen.any():
        raise ChakraError(
            f"nothing in the trace is {wanted.described}", remedy="`chakra stats IN` lists names."
        )
    called = tree.cover(chosen) >= 0
    timed = chosen & tree.timed
    begin = nodes.start_ns[timed]
    pieces = union(begin, begin + tree.inclusive_ns[timed])
    within: Mask = called | (tree.timed & inside(*pieces, nodes.start_ns))
    return within
