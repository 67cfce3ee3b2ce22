"""Long columns of integers in few bits: most hold small numbers, in a type for large ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows

Integers = npt.NDArray[np.integer[Any]]
T = TypeVar("T")

MANY: Final = 1 << 18
"""So many entries of a column are worth packing: with fewer, all columns together are small."""

_OFTEN: Final = 64
"""Who looks at a column so often looks at one row after the other: it is unpacked for good."""


def is_many(count: int) -> bool:
    """Whether a column of so many entries is worth packing."""
    return count >= MANY


def narrowest(values: Integers) -> Integers:
    """Integers in the smallest type that holds them all."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    types = (np.uint8, np.uint16, np.uint32) if low >= 0 else (np.int8, np.int16, np.int32)
    for dtype in types:
        info = np.iinfo(dtype)
        if info.min <= low and high <= info.max:
            return values.astype(dtype, copy=False)
    return values


class Numbers:
    """Integers in fewer bits than their type has."""

    __slots__ = ("_dtype", "_narrow")

    def __init__(self, narrow: Integers, dtype: np.dtype[Any]) -> None:
        self._narrow, self._dtype = narrow, dtype

    @staticmethod
    def joined(parts: Sequence[npt.NDArray[Any] | Numbers]) -> npt.NDArray[Any] | Numbers:
        """Parts of one column, one behind the other."""
        arrays = [part._narrow if isinstance(part, Numbers) else part for part in parts]
        dtypes = [part._dtype if isinstance(part, Numbers) else part.dtype for part in parts]
        column = np.concatenate(arrays)
        return column if column.dtype == dtypes[0] else Numbers(column, dtypes[0])

    def __len__(self) -> int:
        return len(self._narrow)

    def __getitem__(self, place: int) -> Any:
        return self._narrow[place]

    def at(self, places: Rows | slice) -> Numbers:
        """Some of the numbers."""
        return Numbers(self._narrow[places], self._dtype)

    def __call__(self) -> Integers:
        """The numbers in their own type; made anew each time."""
        return self._narrow.astype(self._dtype)


def packed(values: Any) -> Any:
    """A column as it is held: many integers as `Numbers`, where fewer bits hold them."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "iu":
        return values
    if not is_many(len(values)):
        return values
    narrow = narrowest(values)
    return values if narrow.dtype == values.dtype else Numbers(narrow, values.dtype)


def holding_packed(*names: str) -> Callable[[type[T]], type[T]]:
    """Let a class hold these columns `packed`.

    Whoever looks at one gets an array of its own type. Where the column is packed, that is made
    anew each time, up to the 64th, and cannot be written to: a column is changed by putting another
    in its place.
    """

    def with_columns(cls: type[T]) -> type[T]:
        for name in names:
            setattr(cls, name, _PackedColumn(name))
        return cls

    return with_columns


def holds_packed(cls: type[Any], name: str) -> bool:
    """Whether a class holds a column `packed`."""
    return isinstance(vars(cls).get(name), _PackedColumn)


class _PackedColumn:
    """A column of a table, kept among the other attributes of it."""

    def __init__(self, name: str) -> None:
        self._name, self._asked = name, f"_{name}_asked"

    def __get__(self, table: Any, of: type[Any]) -> Any:
        if table is None:
            raise AttributeError(self._name)
        held = table.__dict__[self._name]
        if not isinstance(held, Numbers):
            return held
        values = held()
        values.flags.writeable = False
        table.__dict__[self._asked] = asked = table.__dict__.get(self._asked, 0) + 1
        if asked == _OFTEN:
            table.__dict__[self._name] = values
        return values

    def __set__(self, table: Any, values: Any) -> None:
        table.__dict__[self._name] = packed(values)
