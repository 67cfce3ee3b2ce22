"""Attributes put together column by column: as if each node were written alone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.converters.et import attribute_pieces
from chakra_et.converters.et.attribute_codec import encode_attribute
from chakra_et.converters.et.attribute_pieces import AttributePieces
from chakra_et.converters.et.pieces import Grid
from chakra_et.converters.et.wire import field_bytes
from chakra_et.definitions import Kind
from chakra_et.model import AttributeColumn, AttributeKey, AttributeTable

KINDS = (Kind.INT64, Kind.STRING, Kind.UINT64, Kind.BOOL, Kind.DOUBLE, Kind.STRING_LIST)
VALUES = (-5, "text", 1 << 63, True, 0.5, ("a", "b"))
NUMBERS = range(len(KINDS))


def table(layouts: list[tuple[int, ...]], layout: list[int]) -> AttributeTable:
    """Nodes of some layouts, of columns of each kind."""
    columns = []
    for number in NUMBERS:
        rows = [row for row, code in enumerate(layout) if number in layouts[code]]
        key = AttributeKey(f"attribute {number}", KINDS[number])
        columns.append(AttributeColumn(key, np.array(rows, np.int64), [VALUES[number]] * len(rows)))
    return AttributeTable(len(layout), columns, layouts, np.array(layout, np.int32))


def alone(attributes: AttributeTable) -> list[bytes]:
    """The attributes of each node, one by one."""
    return [
        b"".join(field_bytes(10, encode_attribute(*item)) for item in attributes.at(row))
        for row in range(len(attributes))
    ]


def together(attributes: AttributeTable, cuts: list[int]) -> list[bytes]:
    """The same by columns, part by part."""
    pieces, rows = AttributePieces(attributes), []
    for first, end in pairwise([0, *cuts, len(attributes)]):
        grid = Grid(end - first)
        pieces.put(grid, first, end)
        rows += grid.rows()
    return rows


layouts = st.lists(
    st.lists(st.sampled_from(NUMBERS), unique=True).map(tuple), min_size=1, max_size=6
)


@given(st.data(), layouts)
def test_columns_give_what_nodes_alone_give(
    data: st.DataObject, known: list[tuple[int, ...]]
) -> None:
    """Whether layouts agree on an order or not, and however rare an attribute is."""
    codes = st.integers(0, len(known) - 1)
    attributes = table(known, data.draw(st.lists(codes, min_size=1, max_size=60)))
    cut = data.draw(st.integers(1, len(attributes)))
    cuts = [cut] if cut < len(attributes) else []
    assert together(attributes, cuts) == alone(attributes)


@pytest.mark.parametrize(("layout", "grids"), [([0] * 99, 0), ([0] * 99 + [1], 1)])
def test_only_nodes_that_differ_are_put_together_apart(
    layout: list[int], grids: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the work does not grow with the layouts: here 99 nodes agree, and one has more."""
    inner: list[int] = []

    class Counted(Grid):
        def __init__(self, count: int) -> None:
            inner.append(count)
            super().__init__(count)

    monkeypatch.setattr(attribute_pieces, "Grid", Counted)
    attributes = table([(0, 1), (0, 4, 1)], layout)
    assert together(attributes, []) == alone(attributes)
    assert inner == [1] * grids
