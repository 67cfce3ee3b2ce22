"""Columns that grow while a file is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from chakra_et.narrow import Numbers, holds_packed, is_many, packed


class Growing:
    """Columns by name that grow at their ends, piece by piece.

    The first piece is the column as long as it is alone. All others are copied and can go: kept
    until the end, pieces would leave memory in shreds. Room for more that is never used takes no
    memory. What is there of a long column is packed, from time to time.
    """

    def __init__(self) -> None:
        self._packed: dict[str, list[npt.NDArray[Any] | Numbers]] = {}
        self._room: dict[str, npt.NDArray[Any]] = {}
        self._count: dict[str, int] = {}

    def put(self, name: str, part: npt.NDArray[Any]) -> None:
        """Put a piece behind a column, whose type is that of its first piece."""
        count = self._count.get(name, 0)
        room = self._room.get(name)
        if room is None:
            self._room[name], self._count[name] = part, len(part)
            return
        if count + len(part) > len(room):
            grown = np.empty(2 * (count + len(part)), room.dtype)
            if is_many(count):
                self._packed.setdefault(name, []).append(_packed(room[:count]))
                count = 0
            else:
                grown[:count] = room[:count]
            self._room[name] = room = grown
        room[count : count + len(part)] = part
        self._count[name] = count + len(part)

    def column(self, name: str, dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
        """What was put; an empty column of `dtype` if nothing was."""
        held = self.held(name, dtype)
        return held() if isinstance(held, Numbers) else held

    def column_for(self, table: type[Any], name: str, dtype: npt.DTypeLike = np.int64) -> Any:
        """What was put, as a class of tables holds it."""
        held = self.held(name, dtype)
        if isinstance(held, Numbers) and not holds_packed(table, name):
            return held()
        return held

    def held(self, name: str, dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any] | Numbers:
        """The same, packed if the column is long."""
        room = self._room.get(name)
        if room is None:
            return np.zeros(0, dtype)
        before, last = self._packed.get(name), room[: self._count[name]]
        return Numbers.joined([*before, _packed(last)]) if before else last


def _packed(part: npt.NDArray[Any]) -> npt.NDArray[Any] | Numbers:
    """A part of a column, without the room behind it."""
    held: npt.NDArray[Any] | Numbers = packed(part)
    return part.copy() if held is part else held
