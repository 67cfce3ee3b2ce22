"""Values, shapes and types of inputs and outputs, without an object of Python for each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from chakra_et.pool import Pool

OperandTexts: TypeAlias = tuple[bytes, bytes, bytes]
"""Values, shapes and types of inputs or outputs, as they are carried."""
_TOGETHER: Final = 1 << 12
"""So many are made at once where all are asked for."""


class PackedTexts(Sequence[OperandTexts]):
    """Distinct inputs and outputs; their bytes are made when somebody looks at them.

    `values` holds all values one behind the other, and `offsets` where each begins, int64[number of
    values + 1]. Shapes and types are few. `value`, `shape` and `type` are the codes of each
    operand, int32[number of operands].
    """

    def __init__(
        self,
        values: npt.NDArray[np.uint8],
        offsets: npt.NDArray[np.int64],
        shapes: list[bytes],
        types: list[bytes],
        value: npt.NDArray[np.int32],
        shape: npt.NDArray[np.int32],
        type: npt.NDArray[np.int32],
    ) -> None:
        self.values, self.offsets = values, offsets
        self.shapes, self.types = shapes, types
        self.value, self.shape, self.type = value, shape, type

    @classmethod
    def of(cls, operands: Collection[OperandTexts]) -> PackedTexts:
        """Inputs and outputs, packed; equal values of several are kept for each."""
        shapes: Pool[bytes] = Pool()
        types: Pool[bytes] = Pool()
        values = [values for values, _, _ in operands]
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        return cls(
            np.frombuffer(b"".join(values), np.uint8),
            np.append(0, np.cumsum(lengths)),
            shape=np.array([shapes[shape] for _, shape, _ in operands], np.int32),
            type=np.array([types[type_] for _, _, type_ in operands], np.int32),
            value=np.arange(len(values), dtype=np.int32),
            shapes=shapes.in_order,
            types=types.in_order,
        )

    def __len__(self) -> int:
        return len(self.value)

    @overload
    def __getitem__(self, place: int) -> OperandTexts: ...

    @overload
    def __getitem__(self, place: slice) -> list[OperandTexts]: ...

    def __getitem__(self, place: int | slice) -> OperandTexts | list[OperandTexts]:
        """An operand; a list of them for a slice."""
        if isinstance(place, slice):
            return self.at(place)
        value = self.value[place]
        values = self.values[self.offsets[value] : self.offsets[value + 1]].tobytes()
        return values, self.shapes[self.shape[place]], self.types[self.type[place]]

    def __iter__(self) -> Iterator[OperandTexts]:
        for first in range(0, len(self), _TOGETHER):
            yield from self.at(slice(first, first + _TOGETHER))

    def at(self, places: slice | npt.NDArray[np.integer[Any]]) -> list[OperandTexts]:
        """Some of the operands."""
        value, whole = self.value[places], self.values.data
        starts, ends = self.offsets[value].tolist(), self.offsets[value + 1].tolist()
        codes = zip(self.shape[places].tolist(), self.type[places].tolist(), strict=True)
        return [
            (bytes(whole[start:end]), self.shapes[shape], self.types[type_])
            for start, end, (shape, type_) in zip(starts, ends, codes, strict=True)
        ]

    def select(self, places: npt.NDArray[np.integer[Any]]) -> PackedTexts:
        """Some of the operands; the bytes of all values stay."""
        columns = self.value[places], self.shape[places], self.type[places]
        return PackedTexts(self.values, self.offsets, self.shapes, self.types, *columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]


class PackedPool:
    """`PackedTexts` with what a `Pool` of operands can do."""

    def __init__(self, texts: PackedTexts) -> None:
        self.in_order = texts

    def __len__(self) -> int:
        return len(self.in_order)

    def __iter__(self) -> Iterator[OperandTexts]:
        return iter(self.in_order)

    def __getitem__(self, operand: OperandTexts) -> int:
        """The code of an operand, which joins the others if it is new."""
        code = self.get(operand)
        return self._joined(operand) if code is None else code

    def get(self, operand: OperandTexts) -> int | None:
        """The code of an operand; None for one that is not there."""
        texts, (values, shapes, types) = self.in_order, operand
        if shapes not in texts.shapes or types not in texts.types:
            return None
        alike = texts.shape == texts.shapes.index(shapes)
        alike &= texts.type == texts.types.index(types)
        alike &= np.diff(texts.offsets)[texts.value] == len(values)
        found = (row for row in np.flatnonzero(alike).tolist() if texts[row][0] == values)
        return next(found, None)

    def _joined(self, operand: OperandTexts) -> int:
        texts, (values, shapes, types) = self.in_order, operand
        texts.values = np.append(texts.values, np.frombuffer(values, np.uint8))
        texts.offsets = np.append(texts.offsets, len(texts.values))
        texts.value = np.append(texts.value, np.int32(len(texts.offsets) - 2))
        texts.shapes, texts.types = [*texts.shapes, shapes], [*texts.types, types]
        texts.shape = np.append(texts.shape, np.int32(len(texts.shapes) - 1))
        texts.type = np.append(texts.type, np.int32(len(texts.types) - 1))
        return len(texts) - 1
