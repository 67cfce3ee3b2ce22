"""What an operation was called with, and what it returned: tensors and plain values.

A host trace holds values, shapes, types and strides as four parallel lists in text. The value of a
tensor is `[tensor_id, storage_id, offset, elements, bytes_of_one, device]`, its type
`Tensor(float)`; lists nest in the same way.
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

from chakra_et.benchmark.schema import split
from chakra_et.recording.libraries import element_bytes

DTYPES: Final = {
    "float": "float32", "double": "float64", "int": "int32", "long int": "int64", "long": "int64",
    "long long": "int64", "short int": "int16", "short": "int16", "signed char": "int8",
    "char": "int8", "unsigned char": "uint8", "bool": "bool", "c10::Half": "float16",
    "c10::BFloat16": "bfloat16", "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2", "c10::Float8_e4m3fnuz": "float8_e4m3fnuz",
    "c10::Float8_e5m2fnuz": "float8_e5m2fnuz", "c10::Float8_e8m0fnu": "float8_e8m0fnu",
    "c10::complex<float>": "complex64", "c10::complex<double>": "complex128",
    "c10::complex<c10::Half>": "complex32", "short unsigned int": "uint16",
    "unsigned short": "uint16", "unsigned int": "uint32", "long unsigned int": "uint64",
    "unsigned long": "uint64", "c10::qint8": "qint8", "c10::quint8": "quint8",
    "c10::qint32": "qint32",
}  # fmt: skip
"""C++ names of element types, of all compilers, and PyTorch's."""
WIDTHS: Final = {name: element_bytes(name) for name in DTYPES.values()}
"""Bytes of one element, by PyTorch's names of types."""
MOST_BYTES: Final = 1 << 48
"""More memory than any machine has: a number beyond is damage."""
NO_MEMORY: Final = "Tensor without memory"
"""The tag of a tensor that has a shape, but no storage: a sparse one, or a wrapper of `vmap`."""
_DEVICE: Final = re.compile(r"[a-z]{1,32}(:\d{1,5})?")
_FLOATS: Final = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}


@dataclass(frozen=True)
class View:
    """A tensor as operations see it: a view of a storage. Offset and strides count elements."""

    storage: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    """PyTorch's name of it, or the recorded one where PyTorch's is not known."""
    device: str

    @property
    def extent(self) -> int:
        """The elements of the storage up to the end of the view."""
        if 0 in self.shape:
            return 0
        last = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        return self.offset + last + 1

    @property
    def is_dense(self) -> bool:
        """Whether its elements are all that the storage has up to its end."""
        return self.extent == math.prod(self.shape)


@dataclass(frozen=True)
class Tensor(View):
    """A tensor as a node shows it, with the bytes of an element.

    Its storage is the recorded id: memory that was freed gives its id to what comes after.
    """

    width: int

    @property
    def end(self) -> int:
        """The bytes of the storage up to the end of the view."""
        return self.extent * self.width


@dataclass(frozen=True)
class Opaque:
    """A value of which the recorder wrote the kind alone: `<Generator>`."""

    tag: str


Value: TypeAlias = Any
"""A Tensor, an Opaque, None, a bool, an int, a float, a str, or a list of these."""


def decode(values: bytes, shapes: bytes, types: bytes, strides: str = "") -> list[Value] | None:
    """The values of a node's inputs or outputs; None where the texts cannot be read."""
    columns = [_list(text) for text in (values, shapes, types)]
    if any(column is None for column in columns):
        return None
    value, shape, kind = (column or [] for column in columns)
    stride = _list(strides.encode()) if strides else None
    if not len(value) <= min(len(shape), len(kind)):
        return None
    places = range(len(value))
    try:
        return [_value(value[i], shape[i], str(kind[i]), _at(stride, i)) for i in places]
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None


def tensors(value: Value) -> list[Tensor]:
    """All tensors in a value, in order."""
    if isinstance(value, Tensor):
        return [value]
    return [found for item in value for found in tensors(item)] if isinstance(value, list) else []


def opaque(value: Value) -> list[Opaque]:
    """All values of which only the kind is known, in order."""
    if isinstance(value, Opaque):
        return [value]
    return [found for item in value for found in opaque(item)] if isinstance(value, list) else []


def _list(text: bytes) -> list[Any] | None:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        try:
            found = ast.literal_eval(text.decode("utf-8", "replace"))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    return found if isinstance(found, list) else None


def _value(value: Any, shape: Any, kind: str, stride: Any) -> Value:
    if kind.startswith("Tensor"):
        return _tensor(value, shape, kind[len("Tensor(") : -1], stride)
    if kind.startswith(("GenericList[", "Tuple[")) and isinstance(value, list):
        inner = split(kind[kind.index("[") + 1 : -1])
        if not inner or not isinstance(shape, list) or len(shape) < len(value):
            return [_plain(item, "") for item in value]
        inner += inner[-1:] * (len(value) - len(inner))
        return [_value(item, shape[i], inner[i], _at(stride, i)) for i, item in enumerate(value)]
    return _plain(value, kind)


def _at(lists: Any, place: int) -> Any:
    return lists[place] if isinstance(lists, list) and place < len(lists) else None


def _tensor(value: Any, shape: Any, kind: str, stride: Any) -> Value:
    if not isinstance(value, list) or len(value) != 6 or not isinstance(shape, list):
        return Opaque("Tensor")
    tensor, storage, offset, _, width, device = value
    if not device:
        return None if kind.startswith("nullptr") else Opaque(NO_MEMORY)
    if not _DEVICE.fullmatch(device):
        raise ValueError(f"no device: {device!r}")
    dims = tuple(_count(n) for n in shape)
    dtype = DTYPES.get(kind, kind)
    whole = isinstance(stride, list) and len(stride) == len(dims)
    # A tensor without a storage goes by its own id, kept apart from those of storages.
    identity = int(storage) if storage else -int(tensor)
    found = Tensor(
        identity,
        _count(offset),
        dims,
        tuple(map(_count, stride)) if whole else contiguous(dims),
        dtype,
        device,
        WIDTHS.get(dtype) or _count(width) or 1,
    )
    if found.end > MOST_BYTES:
        raise ValueError(f"a tensor up to byte {found.end}")
    return found


def _count(value: Any) -> int:
    """A number of things. Raises ValueError for anything else."""
    if type(value) is not int or value < 0:
        raise ValueError(f"no number of things: {value!r}")
    return value


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a tensor whose elements lie one after the other."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _plain(value: Any, kind: str) -> Value:
    if isinstance(value, list):
        return [_plain(item, "") for item in value]
    if not isinstance(value, str) or kind in ("String", "Device"):
        return value
    if value == "<None>" or kind == "None":
        return None
    if kind == "Double":
        return _FLOATS.get(value, Opaque("Double"))
    return Opaque(value[1:-1]) if value.startswith("<") and value.endswith(">") else value
