"""Which part of a recording runs: some of its steps, or what an annotation encloses."""

from __future__ import annotations

import numpy as np

from chakra_et.benchmark.host_tree import HostTree
from chakra_et.columns import Mask, Rows
from chakra_et.errors import ChakraError
from chakra_et.recording.libraries import STEP
from chakra_et.shown import number_of


def whole(tree: HostTree) -> Mask:
    """Every node."""
    return np.ones(len(tree.caller), np.bool_)


def of_steps(tree: HostTree, first: int, last: int) -> Mask:
    """The nodes of steps `first` to `last` of the recording, counted from 1.

    Raises ChakraError where the recording has no such steps.
    """
    nodes = tree.trace.nodes
    is_step = np.array([bool(STEP.fullmatch(name)) for name in nodes.names] or [False])
    steps = np.flatnonzero(is_step[nodes.name_code])
    if not 1 <= first <= last <= len(steps):
        raise ChakraError(
            f"no steps {first} to {last}: the recording has {number_of(len(steps), 'step')}",
            remedy="Steps are ProfilerStep annotations, counted from 1.",
        )
    return _enclosed(tree, steps[first - 1 : last])


def of_annotation(tree: HostTree, name: str) -> Mask:
    """The nodes that run within annotations of a name. Raises ChakraError where none has it."""
    nodes = tree.trace.nodes
    rows = np.flatnonzero(nodes.name == name)
    if not len(rows):
        raise ChakraError(
            f"no annotation is called {name!r}", remedy="`chakra stats IN` lists all names."
        )
    return _enclosed(tree, rows)


def _enclosed(tree: HostTree, rows: Rows) -> Mask:
    """What lies within these nodes: by times on all threads, else what they have called."""
    nodes = tree.trace.nodes
    chosen = np.zeros(len(tree.caller), np.bool_)
    chosen[rows] = True
    inside: Mask = tree.cover(chosen) >= 0
    for row in rows[tree.timed[rows]].tolist():
        begin = nodes.start_ns[row]
        since = tree.timed & (nodes.start_ns >= begin)
        inside |= since & (nodes.start_ns < begin + tree.inclusive_ns[row])
    return inside
