"""Nodes with copies of some of them behind, which edits then change."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.model import AttributeColumn, AttributeTable, Nodes
from chakra_et.passes.edit import REFERENCES, drop_attribute


def extended(nodes: Nodes, like: Rows) -> Nodes:
    """Nodes with copies behind them: row r is like row `like[r]`, and copies have other ids."""
    count, more = len(nodes), len(like) - len(nodes)
    first = int(nodes.id.max(initial=0)) + 1
    table = nodes.attributes
    columns = [_extended_column(column, like, count) for column in table.columns]
    attributes = AttributeTable(len(like), columns, list(table.layouts), table.layout[like].copy())

    def taken(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.asarray(column[like])

    made = Nodes(
        id=np.concatenate([nodes.id, np.arange(first, first + more, dtype=np.uint64)]),
        type=taken(nodes.type),
        name_code=taken(nodes.name_code),
        names=list(nodes.names),
        start_ns=taken(nodes.start_ns),
        duration_ns=taken(nodes.duration_ns),
        input_code=taken(nodes.input_code),
        output_code=taken(nodes.output_code),
        texts=nodes.texts,
        attributes=attributes,
        extra=dict(nodes.extra),
        exact_start=taken(nodes.exact_start),
        exact_duration=taken(nodes.exact_duration),
    )
    for name in REFERENCES:
        drop_attribute(made.attributes, name, np.arange(count, len(like)))
    return made


def _extended_column(column: AttributeColumn, like: Rows, count: int) -> AttributeColumn:
    """A column whose copied rows have the values of those that they are like."""
    place = np.full(count, -1, np.int64)
    place[column.rows] = np.arange(len(column.rows))
    taken = place[like[count:]]
    rows = np.concatenate([column.rows, count + np.flatnonzero(taken >= 0)])
    return AttributeColumn(column.key, rows, column.part(np.concatenate(
        [np.arange(len(column.rows)), taken[taken >= 0]])).values)  # fmt: skip
