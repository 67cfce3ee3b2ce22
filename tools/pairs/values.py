"""Arguments of ops, as a host trace and a Kineto profile write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Shape = tuple[int, ...]


class DType(NamedTuple):
    name: str
    size: int


BF16 = DType("c10::BFloat16", 2)
F32 = DType("float", 4)
F64 = DType("double", 8)
I64 = DType("long int", 8)
BOOL = DType("bool", 1)


# ------------------------------------------------------------------------------------------------
# Arguments of ops, as each of the two files writes them


class Layout(NamedTuple):
    """All that is written about an argument except its value."""

    type: str
    shape: str = "[]"
    strides: str = "[]"
    concrete: str = ""
    kineto_type: str = ""
    kineto_shape: str = "[]"
    kineto_strides: str = "[]"


class Literal(NamedTuple):
    text: str
    layout: Layout


class Storage:
    __slots__ = ("id", "nbytes", "views")

    def __init__(self, nbytes: int) -> None:
        self.id = 0
        self.nbytes = nbytes
        self.views = 0


class Tensor:
    """A view of a storage. Ids are given when an observer first meets it."""

    __slots__ = ("device", "dtype", "id", "layout", "offset", "shape", "storage", "strides", "text")

    def __init__(self, shape: Shape, strides: Shape, dtype: DType, storage: Storage) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.storage = storage
        storage.views += 1
        self.offset = 0
        self.device = "cuda:0"
        self.id = 0
        self.text = ""
        self.layout = _tensor_layout(shape, strides, dtype)


Arg = Tensor | Literal | list[Tensor]


def contiguous(shape: Shape) -> Shape:
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)


def joined(items: Sequence[object]) -> str:
    """A list as the host trace has it: no spaces."""
    return "[" + ",".join(map(str, items)) + "]"


_layouts: dict[object, Layout] = {}
_literals: dict[tuple[type, object], Literal] = {}


def _tensor_layout(shape: Shape, strides: Shape, dtype: DType) -> Layout:
    key = (shape, strides, dtype)
    found = _layouts.get(key)
    if found is None:
        found = _layouts[key] = Layout(
            type=f"Tensor({dtype.name})",
            shape=joined(shape),
            strides=joined(strides),
            kineto_type=dtype.name,
            kineto_shape=str(list(shape)),
            kineto_strides=str(list(strides)),
        )
    return found


def list_layout(layouts: tuple[Layout, ...]) -> Layout:
    found = _layouts.get(layouts)
    if found is None:
        found = _layouts[layouts] = Layout(
            type="GenericList" + joined([x.type for x in layouts]),
            shape=joined([x.shape for x in layouts]),
            strides=joined([x.strides for x in layouts]),
            kineto_type="TensorList",
            kineto_shape="[" + ", ".join(x.kineto_shape for x in layouts) + "]",
            kineto_strides="[" + ", ".join(x.kineto_strides for x in layouts) + "]",
        )
    return found


def lit(value: int | float | str | tuple[int, ...]) -> Literal:
    """A bool, int, float, str or tuple of ints as an argument."""
    found = _literals.get((type(value), value))
    if found is None:
        found = _literals[type(value), value] = _literal(value)
    return found


def _literal(value: int | float | str | tuple[int, ...]) -> Literal:
    if isinstance(value, bool):
        layout = Layout("Bool", concrete=str(value), kineto_type="Scalar")
        return Literal("true" if value else "false", layout)
    if isinstance(value, int):
        return Literal(str(value), Layout("Int", concrete=str(value), kineto_type="Scalar"))
    if isinstance(value, float):
        shown = f"{value:g}" if value % 1 else f"{value:.0f}."
        layout = Layout("Double", concrete=shown, kineto_type="Scalar")
        return Literal(f"{value:.6f}", layout)
    if isinstance(value, str):
        return Literal(f'"{value}"', Layout("String"))
    kind = "Bool" if value and isinstance(value[0], bool) else "Int"
    nested = joined(["[]"] * len(value))
    layout = Layout(
        "GenericList" + joined([kind] * len(value)),
        shape=nested,
        strides=nested,
        concrete=str(list(value)),
        kineto_type="ScalarList",
    )
    return Literal(joined([str(x).lower() for x in value]), layout)


NONE = Literal('"<None>"', Layout("None"))
OBJECT = Literal('"<Object>"', Layout("Object"))
CUDA = Literal('"cuda:0"', Layout("Device"))
