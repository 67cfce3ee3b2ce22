"""Files of forks that use the present schema with other meanings."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.definitions import Kind, NodeType
from chakra_et.model import Trace
from chakra_et.patterns import lazy_pattern

_PREFIX: Final = lazy_pattern(r"(MEM_LOAD|MEM_STORE|COMP|COMM_SEND|COMM_RECV|COMM_COLL)_NODE")
_SHIFTED: Final = {
    4: NodeType.COMP,
    5: NodeType.COMP,
    6: NodeType.COMM_SEND,
    7: NodeType.COMM_RECV,
    8: NodeType.COMM_COLL,
}
"""Types of a fork that put computing in memory (4) before COMP, as those of this format."""


def undo_fork(trace: Trace) -> None:
    """Give the nodes of a serving simulator's fork the types and times of this format.

    It moved COMP and all that follows by one and writes nanoseconds where microseconds belong. Its
    nodes are named after their types, which tells: every such name must agree with the moved type
    and at least one must disagree with the type as it stands. Traces that were converted from
    something stay as they are. Changes the trace.
    """
    if trace.metadata.get("converted_from") is not None:
        return
    nodes = trace.nodes
    told = {code: m[1] for code, name in enumerate(nodes.names) if (m := _PREFIX.match(name))}
    rows = np.flatnonzero(np.isin(nodes.name_code, list(told)))
    if len(rows) == 0:
        return
    types = nodes.type[rows].tolist()
    named = [NodeType[told[code]] for code in nodes.name_code[rows].tolist()]
    if all(kind == name for kind, name in zip(types, named, strict=True)):
        return
    if not all(_SHIFTED.get(k, k) == n for k, n in zip(types, named, strict=True)):
        return
    for old in sorted(_SHIFTED):  # ascending, so that no type is moved twice
        nodes.type[nodes.type == old] = _SHIFTED[old]
    nodes.duration_ns //= 1000
    nodes.exact_duration[:] = True
    trace.metadata.set("converted_from", Kind.STRING, "fork with types moved by one and ns")
