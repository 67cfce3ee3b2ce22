"""Pieces of bytes of many nodes, from which records are put together without a step for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.converters.et.wire import Block, Heads, laid_out, slices

Cells: TypeAlias = npt.NDArray[np.object_]
"""Bytes in each cell."""
_COUNTED: Final = 1 << 20
"""Within so wide a range, codes are counted; in a wider one they are sorted."""


class Pieces(NamedTuple):
    """A piece of bytes for each of some rows, and how long it is."""

    cells: Cells
    lengths: Rows

    @classmethod
    def of(cls, pieces: Sequence[bytes]) -> Pieces:
        """Pieces that are there."""
        count = len(pieces)
        lengths = np.fromiter(map(len, pieces), np.int64, count)
        return cls(np.fromiter(pieces, object, count), lengths)

    @classmethod
    def by_code(
        cls, codes: npt.NDArray[Any], encode: Callable[[list[int]], Iterable[bytes]]
    ) -> Pieces:
        """The piece of each code; `encode` makes those of all codes that occur."""
        used, places = _distinct(codes)
        return cls.of(list(encode(used.tolist()))).at(places)

    @classmethod
    def of_blocks(cls, count: int, blocks: Sequence[tuple[Rows, Block]]) -> Pieces:
        """The fields of all blocks, one after the other; each block has those of some rows."""
        data, lengths = laid_out(count, blocks)
        return cls(np.fromiter(slices(data, lengths), object, count), lengths)

    def at(self, rows: Rows) -> Pieces:
        """Those of some rows."""
        return Pieces(self.cells[rows], self.lengths[rows])


class Grid:
    """What stands in each of some rows: pieces, column by column."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.lengths = np.zeros(count, np.int64)
        """Of what stands in each row."""
        self._columns: list[Cells] = []

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self._columns)

    def put(self, pieces: Pieces, rows: Rows | None = None) -> None:
        """Put pieces behind what stands in some of the rows, or in all."""
        cells = pieces.cells
        if rows is None or len(rows) == self.count:
            self.lengths += pieces.lengths
        else:
            cells = np.full(self.count, b"", object)
            cells[rows] = pieces.cells
            self.lengths[rows] += pieces.lengths
        self._columns.append(cells)

    def clear(self, rows: Rows, width: int, lengths: Rows) -> None:
        """Take away what stands in some rows behind so many columns, which have these lengths."""
        for column in self._columns[width:]:
            column[rows] = b""
        self.lengths[rows] = lengths

    def frame(self, heads: Heads) -> None:
        """Put the length of each row before it, as `heads` has it."""
        pieces = Pieces.by_code(self.lengths, heads.of)
        self._columns.insert(0, pieces.cells)
        self.lengths += pieces.lengths

    def rows(self) -> list[bytes]:
        """What stands in each row."""
        return list(map(b"".join, self._cells().tolist()))

    def joined(self) -> bytes:
        """What stands in all rows, one after the other."""
        return b"".join(self._cells().ravel().tolist())

    def _cells(self) -> Cells:
        return np.stack(self._columns or [np.full(self.count, b"", object)], axis=1)


def _distinct(codes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Rows]:
    """The codes that occur, ascending, and the place of each code among them."""
    low, high = int(codes.min(initial=0)), int(codes.max(initial=0))
    if high - low > _COUNTED:
        return np.unique(codes, return_inverse=True)
    places = codes.astype(np.int64) - low
    used = np.flatnonzero(np.bincount(places))
    number = np.zeros(high - low + 1, np.int64)
    number[used] = np.arange(len(used))
    return used + low, number[places]
