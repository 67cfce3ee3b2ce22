"""The optimizer's work on each rank's part of the weights, where phases tell it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from chakra_et.definitions import NodeType
from chakra_et.scale.changes import Changes, Pair, in_proportion
from chakra_et.scale.collectives import Growth
from chakra_et.scale.sizes import part

_PHASE: Final = "optimizer"
_STATES: Final = 16
"""An optimizer keeps no more numbers than this for each parameter."""


def resize_optimizer(changes: Changes, lengths: Mapping[int, int], grows: Growth) -> None:
    """Change the nodes of the optimizer's phase.

    `lengths` has what the lengths of summed gradients become. Where parts are smaller, so are the
    steps: flat tensors of one length are a part of all weights.
    """
    nodes = changes.trace.nodes
    phases = changes.view.texts("phase")
    for row in np.flatnonzero(phases == _PHASE).tolist():
        pair = int(nodes.input_code[row]), int(nodes.output_code[row])
        if nodes.type[row] != NodeType.COMP:
            if not changes.changed("comm_size", row):
                changes.put(np.array([row]), pair, lengths, {})
        elif grows.divides:
            found = {*changes.texts.lengths(pair[0]), *changes.texts.lengths(pair[1])}
            if len(found) == 1 and min(found) > 0:
                _step(changes, row, pair, found.pop(), grows)


def _step(changes: Changes, row: int, pair: Pair, old: int, grows: Growth) -> None:
    """One step on a part of so many elements: shapes, work, bytes and time."""
    new = part(old, grows.old, grows.new)
    rows = np.array([row])
    changes.put(rows, pair, {old: new}, {old: new})
    changes.scale("num_ops", rows, old, new)
    changes.scale("tensor_size", rows, old, new)
    duration = changes.trace.nodes.duration_ns
    duration[row] = in_proportion(int(duration[row]), old, new)
    for name, size in changes.named(row, "inputs"):
        if size % old == 0 and 0 < size // old <= _STATES:
            changes.tensor(name, size, size // old * new)
    changes.result.changed["optimizer steps on smaller parts"] += 1
