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

MANY: Final = 1 << 18
"""So many values of a column are worth packing: with fewer, all columns together are small."""


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


class Numbers:
    """Integers in fewer bits than their type has."""

    __slots__ = ("_dtype", "_narrow")

    def __init__(self, narrow: npt.NDArray[np.integer[Any]], dtype: np.dtype[Any]) -> None:
        self._narrow, self._dtype = narrow, dtype

    def __len__(self) -> int:
        return len(self._narrow)

    def __getitem__(self, place: int) -> Any:
        return self._narrow[place]

    def at(self, places: Rows | slice) -> Numbers:
        """Some of the numbers."""
        return Numbers(self._narrow[places], self._dtype)

    def __call__(self) -> npt.NDArray[np.integer[Any]]:
        """The numbers in their own type; made anew each time."""
        return self._narrow.astype(self._dtype)


class CodedTexts:
    """Texts of which few are distinct: codes into these, until somebody looks at the texts."""

    __slots__ = ("codes", "distinct")

    def __init__(self, codes: npt.NDArray[np.integer[Any]], distinct: list[str]) -> None:
        self.codes: npt.NDArray[np.integer[Any]] = np.asarray(codes, np.int32)
        if len(codes) >= MANY:
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


def packed(values: Any) -> Any:
    """Values as a column holds them: many integers in as few bits as they all need."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu" or len(values) < MANY:
        return values
    narrow = narrowest(values)
    return values if narrow.dtype == values.dtype else Numbers(narrow, values.dtype)


def narrowest(values: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.integer[Any]]:
    """Integers in the smallest type that holds them all."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    types = (np.uint8, np.uint16, np.uint32) if low >= 0 else (np.int8, np.int16, np.int32)
    for dtype in types:
        info = np.iinfo(dtype)
        if info.min <= low and high <= info.max:
            return values.astype(dtype, copy=False)
    return values
