"""Fields and attributes in which nodes differ from those that stand for them elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.model import UNKNOWN_NS, Nodes, Trace
from chakra_et.model.attribute_values import same_value

Change: TypeAlias = tuple[str, int, int, int, str | None]
"""A name, how many nodes have it on one side only (left, right) or otherwise, and an example."""
_LONGEST = 60


def attribute_changes(left: Trace, right: Trace, row: Rows) -> list[Change]:
    """What differs between nodes and those at `row` (-1 for none) of another trace, by name.

    Times are counted from the first start of either trace.
    """
    mine = np.flatnonzero(row >= 0)
    theirs = row[mine]
    columns: dict[str, Callable[[Nodes], npt.NDArray[Any]]] = {
        name: partial(_field, name=name)
        for name in ("name", "type", "start_ns", "duration_ns", "inputs", "outputs")
    }
    for nodes in (left.nodes, right.nodes):
        for column in nodes.attributes.columns:
            columns.setdefault(column.key.name, partial(_attribute, name=column.key.name))
    ids = left.nodes.id[mine]
    changes = [
        _change(name, of(left.nodes)[mine], of(right.nodes)[theirs], ids)
        for name, of in columns.items()
    ]
    return sorted((c for c in changes if any(c[1:4])), key=lambda change: -sum(change[1:4]))


def _attribute(nodes: Nodes, name: str) -> npt.NDArray[Any]:
    return nodes.attributes.dense(name, None, object)


def _field(nodes: Nodes, name: str) -> npt.NDArray[Any]:
    """A field of every node, as objects; None where it is not known."""
    if name == "start_ns":
        timed = nodes.start_ns != UNKNOWN_NS
        first = int(nodes.start_ns[timed].min()) if timed.any() else 0
        column = (nodes.start_ns - first).astype(object)
        column[~timed] = None
        return column
    if name in ("inputs", "outputs"):
        code = nodes.input_code if name == "inputs" else nodes.output_code
        distinct = np.empty(len(nodes.texts) + 1, object)
        for place, text in enumerate(nodes.texts):
            distinct[place] = text
        return distinct[code]
    return nodes.column(name).astype(object)


def _change(name: str, left: npt.NDArray[Any], right: npt.NDArray[Any], ids: Any) -> Change:
    missing = np.array([item is None for item in left], np.bool_)
    absent = np.array([item is None for item in right], np.bool_)
    pairs = np.flatnonzero(~missing & ~absent)
    changed = [i for i in pairs.tolist() if not same_value(left[i], right[i])]
    only_left, only_right = np.flatnonzero(~missing & absent), np.flatnonzero(missing & ~absent)
    first = next(iter([*changed, *only_left.tolist(), *only_right.tolist()]), None)
    example = None
    if first is not None:
        example = f"node {ids[first]}: {_shown(left[first])} -> {_shown(right[first])}"
    return name, len(only_left), len(only_right), len(changed), example


def _shown(value: object) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], bytes):
        value = b" ".join(value).decode("utf-8", "backslashreplace")
    text = "nothing" if value is None else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
