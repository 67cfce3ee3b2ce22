"""How long memory is kept that no operation names any more.

A program lets go of memory after its last use. Gradients are kept longer: a parameter holds its own
until the optimizer sets it to none, which no operation records.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.benchmark.host_tree import HostTree
from chakra_et.benchmark.views import AT_START, Memory
from chakra_et.columns import Rows

_ACCUMULATES: Final = "torch::autograd::AccumulateGrad"
_FORGETS: Final = "Optimizer.zero_grad#"


def keep_gradients(tree: HostTree, rows: Rows, memory: Memory) -> None:
    """Keep what became the gradient of a parameter until the next `zero_grad`, or to the end.

    `rows` are those of the operations that filled the memory, in their order.
    """
    names = tree.trace.nodes.names
    code = tree.trace.nodes.name_code
    accumulates = np.array([name.startswith(_ACCUMULATES) for name in names] or [False])[code]
    forgets = np.array([name.startswith(_FORGETS) for name in names] or [False])[code]
    inside = tree.cover(accumulates)[rows] >= 0
    # The first operation behind each call of zero_grad, and the last one of all.
    ends = np.append(np.searchsorted(rows, np.flatnonzero(forgets)), len(rows)) - 1
    for operation in np.flatnonzero(inside).tolist():
        end = int(ends[np.searchsorted(ends, operation)])
        for place in memory.touched[operation]:
            storage = memory.storages[place]
            if storage.born != AT_START:
                storage.last = max(storage.last, end)
