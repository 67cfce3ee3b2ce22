"""What-ifs: the parts of all durations, changed by factors and by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from msgspec.structs import replace

from chakra_et.errors import ChakraError
from chakra_et.model import Node, TimeParts
from chakra_et.replay.columns import Columns
from chakra_et.replay.selectors import select_parts

Duration: TypeAlias = "Callable[[Node], int | None]"


def changed_parts(
    columns: Columns, duration: Duration | None, scale: Sequence[tuple[str, float]]
) -> TimeParts:
    """The parts of the durations of a trace after a change.

    Each selector in `scale` multiplies the time that it names. Then `duration` is asked about every
    node, and gives what its own time is to be in all, in ns, or None.
    """
    parts = columns.parts
    factor = np.ones(len(parts.ns))
    for selector, by in scale:
        if by < 0:
            raise ChakraError(f"durations cannot be scaled by {by}", remedy="Give 0 or more.")
        factor[select_parts(columns.trace, parts, selector)] *= by
    changed = factor != 1
    if changed.any():
        # Only what is scaled passes through floats, which hold whole ns up to 2**53.
        ns = parts.ns.copy()
        ns[changed] = np.rint(ns[changed] * factor[changed]).astype(np.int64)
        parts = replace(parts, ns=ns)
    return parts if duration is None else _asked(columns, parts, duration)


def _asked(columns: Columns, parts: TimeParts, duration: Duration) -> TimeParts:
    """The parts with the time of each node as `duration` gives it.

    Where a node's time lies in several intervals, each part changes in proportion.
    """
    given = [duration(node) for node in columns.trace.nodes]
    told = np.array([new is not None for new in given], np.bool_)
    wanted = np.array([0 if new is None else int(new) for new in given], np.int64)
    if len(wanted) and wanted.min() < 0:
        raise ChakraError("a duration is negative", remedy="Give 0 or more ns.")
    before = parts.by_owner(len(columns))
    ns, owned = parts.ns.copy(), np.flatnonzero(~parts.gap)
    mine = owned[told[parts.owner[owned]]]
    owner = parts.owner[mine]
    ratio = wanted[owner] / np.maximum(before[owner], 1)
    ns[mine] = np.where(before[owner] > 0, np.floor(ns[mine] * ratio), 0).astype(np.int64)
    after = replace(parts, ns=ns).by_owner(len(columns))
    own = mine[parts.node[mine] == owner]
    # What rounding leaves, and the time of nodes that had none, goes into their own interval.
    ns[own] += (wanted - after)[parts.node[own]]
    return replace(parts, ns=ns)
