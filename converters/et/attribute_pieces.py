"""The attributes of many nodes as pieces of bytes, in the order of each node's layout.

Layouts mostly agree on one order of all columns, of which each has some; so nodes are put together
column by column. Apart from these are the few nodes that have a rare attribute, for which others
need no place then, and those whose layouts have another order, layout by layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from chakra_et.codes import distinct
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.converters.et import fields
from chakra_et.converters.et.attribute_codec import encode_block, encode_column
from chakra_et.converters.et.pieces import Grid, Pieces
from chakra_et.converters.et.wire import BYTES, Block, tag
from chakra_et.model import AttributeColumn, AttributeTable

_OUTER: Final = tag(fields.ATTR, BYTES)
_RARE: Final = 16
"""An attribute is rare that at most one of so many nodes has."""
_Encoded: TypeAlias = "dict[int, tuple[Rows, Block | Pieces]]"
"""For each column the places of the nodes that have it, and what they say of it."""


class AttributePieces:
    """The attributes of a table."""

    def __init__(self, table: AttributeTable) -> None:
        self._table = table
        self._order, self._fits = _common_order(table)

    def put(self, grid: Grid, start: int, end: int, told: Sequence[AttributeColumn] = ()) -> None:
        """Put those of the nodes from `start` to `end`, and `told` behind them, into a grid that
        has a row for each.
        """
        last = range(len(self._table.columns), len(self._table.columns) + len(told))
        columns = [column.within(start, end) for column in self._table.columns]
        encoded = {
            number: (part.rows - start, _encoded(part))
            for number, part in enumerate([*columns, *told])
            if len(part)
        }
        width, lengths = grid.width, grid.lengths.copy()
        common = {n for n, (places, _) in encoded.items() if _RARE * len(places) > grid.count}
        _put(grid, [number for number in (*self._order, *last) if number in common], encoded)
        rare = encoded.keys() - common
        apart = list(self._apart(encoded, rare, last, self._table.layout[start:end]))
        if not apart:
            return
        rest = np.full(grid.count, b"", object)
        for places, order in apart:
            inner = Grid(len(places))
            _put(inner, order, encoded, _places_among(places, grid.count))
            rest[places] = inner.rows()
        rows = np.concatenate([places for places, _ in apart])
        grid.clear(rows, width, lengths[rows])
        grid.put(Pieces.of(rest.tolist()))

    def _apart(
        self, encoded: _Encoded, rare: set[int], last: Iterable[int], layout: npt.NDArray[np.int32]
    ) -> Iterator[tuple[Rows, Sequence[int]]]:
        """Places of nodes that are not like most, and the order of their columns."""
        fits = self._fits[layout]
        chosen = np.zeros(len(layout), np.bool_)
        for number in rare:
            chosen[encoded[number][0]] = True
        places = np.flatnonzero(chosen & fits)
        if len(places):
            yield places, (*self._order, *last)
        for code in distinct(layout[~fits]).tolist():
            yield np.flatnonzero(layout == code), (*self._table.layouts[code], *last)


def _encoded(part: AttributeColumn) -> Block | Pieces:
    block = encode_block(part.key, part.values, _OUTER)
    return Pieces.of(encode_column(part, _OUTER)) if block is None else block


def _common_order(table: AttributeTable) -> tuple[list[int], Mask]:
    """An order of columns, and which of the layouts have theirs in it: all common ones, mostly."""
    order: list[int] = []
    fits = np.zeros(len(table.layouts), np.bool_)
    for code in np.argsort(-np.bincount(table.layout), kind="stable").tolist():
        places = [order.index(n) for n in table.layouts[code] if n in order]
        fits[code] = all(before < after for before, after in pairwise(places))
        if fits[code]:
            here = len(order)
            for number in reversed(table.layouts[code]):
                if number in order:
                    here = order.index(number)
                else:
                    order.insert(here, number)
    return order, fits


def _places_among(places: Rows, count: int) -> Rows:
    """For each of so many nodes its place among those that are chosen, or `NO_ROW`."""
    result = np.full(count, NO_ROW)
    result[places] = np.arange(len(places))
    return result


def _put(grid: Grid, order: Iterable[int], encoded: _Encoded, place_of: Rows | None = None) -> None:
    """Put columns into a grid; neighbours that are numbers become one piece.

    `place_of` tells the row of the grid of each place, if they differ.
    """
    blocks: list[tuple[Rows, Block]] = []
    for number in order:
        if number not in encoded:
            continue
        places, made = encoded[number]
        if place_of is not None:
            chosen = np.flatnonzero(place_of[places] != NO_ROW)
            if len(chosen) == 0:
                continue
            places, made = place_of[places[chosen]], made.at(chosen)
        if isinstance(made, Block):
            blocks.append((places, made))
            continue
        _put_blocks(grid, blocks)
        blocks = []
        grid.put(made, places)
    _put_blocks(grid, blocks)


def _put_blocks(grid: Grid, blocks: list[tuple[Rows, Block]]) -> None:
    if blocks:
        grid.put(Pieces.of_blocks(grid.count, blocks))
