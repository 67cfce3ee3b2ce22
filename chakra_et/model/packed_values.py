"""Values of attributes in less room than 64 bits, or an object of Python, each.

They are made when somebody looks at them. Files are written of parts, so that the values of a long
recording never stand in memory all at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.narrow import is_many, narrowest

_LINE_END: Final = ord("\n")


class PackedValues(Protocol):
    """What columns hold instead of their values."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int, /) -> Any:
        """One value."""

    def at(self, places: Rows | slice) -> Any:
        """Some of the values, packed or not."""

    def __call__(self) -> Any:
        """The values: an array, or a list where no array holds such values."""


class CodedTexts:
    """Texts of which few are distinct: codes into these, until somebody looks at the texts."""

    __slots__ = ("codes", "distinct")

    def __init__(self, codes: npt.NDArray[np.integer[Any]], distinct: list[str]) -> None:
        self.codes: npt.NDArray[np.integer[Any]] = np.asarray(codes, np.int32)
        if is_many(len(codes)):
            self.codes = narrowest(codes)
        self.distinct = distinct

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, place: int) -> str:
        return self.distinct[int(self.codes[place])]

    def at(self, places: Rows | slice) -> CodedTexts:
        """Some of the texts."""
        return CodedTexts(self.codes[places], self.distinct)

    def __call__(self) -> list[str]:
        """The texts."""
        return list(map(self.distinct.__getitem__, self.codes.tolist()))


class JoinedTexts:
    """Texts of which most are distinct, as UTF-8: one behind the other, a line's end behind each.

    No text holds such an end itself.
    """

    __slots__ = ("_data", "_ends")

    def __init__(self, data: npt.NDArray[np.uint8], ends: npt.NDArray[np.integer[Any]]) -> None:
        """`ends` has the place behind each text's end, and before them that of the first text."""
        self._data, self._ends = data, ends

    @classmethod
    def of(cls, pieces: list[bytes]) -> JoinedTexts:
        """The texts of some pieces, each of which ends with the end of a text."""
        data = np.frombuffer(b"".join(pieces), np.uint8)
        return cls(data, narrowest(np.append(0, np.flatnonzero(data == _LINE_END) + 1)))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> str:
        begin, end = self._ends[place], self._ends[place + 1] - 1
        return self._data[begin:end].tobytes().decode()

    def at(self, places: Rows | slice) -> Any:
        """Some of the texts; packed if they stand one behind the other."""
        if not isinstance(places, slice):
            return [self[place] for place in places.tolist()]
        first, end, _ = places.indices(len(self))
        return JoinedTexts(self._data, self._ends[first : end + 1])

    def __call__(self) -> list[str]:
        """The texts."""
        data = self._data[self._ends[0] : self._ends[-1]].tobytes()
        return data.decode().split("\n")[:-1]


class TextsOfRows:
    """Texts that `make` gives of rows of something else."""

    __slots__ = ("_make", "_rows")

    def __init__(self, make: Callable[[Rows], list[str]], rows: Rows) -> None:
        self._make, self._rows = make, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> str:
        return self._make(self._rows[place : place + 1])[0]

    def at(self, places: Rows | slice) -> TextsOfRows:
        """Some of the texts."""
        return TextsOfRows(self._make, self._rows[places])

    def __call__(self) -> list[str]:
        """The texts."""
        return self._make(self._rows)
