"""What one operation is, as far as it can be the same for many nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from chakra_et.build.grid import Grid
from chakra_et.build.places import BuildError
from chakra_et.definitions import ATTRIBUTES, Kind, NodeType

DTYPES: Final[dict[str, tuple[int, str]]] = {
    "fp64": (8, "double"),
    "fp32": (4, "float"),
    "bf16": (2, "c10::BFloat16"),
    "fp16": (2, "c10::Half"),
    "fp8": (1, "c10::Float8_e4m3fn"),
    "int64": (8, "long int"),
    "int32": (4, "int"),
    "uint8": (1, "unsigned char"),
    "bool": (1, "bool"),
}
"""Bytes of an element, and what PyTorch calls the type in a trace."""


class Tensor:
    """Data of one rank: what operations read and write, and so wait for each other by.

    `shape` counts elements, `size_bytes` is all of it. `writers` are the operations that wrote it
    last, none before the first one: weights and inputs are there from the start.
    """

    __slots__ = ("dtype", "name", "shape", "size_bytes", "writers")

    def __init__(self, name: str, shape: tuple[int, ...], dtype: str) -> None:
        if dtype not in DTYPES:
            raise BuildError.here(f"no type {dtype!r}", f"It is one of {', '.join(DTYPES)}.")
        size_bytes = DTYPES[dtype][0]
        for length in shape:
            if not isinstance(length, int) or length < 0:
                raise BuildError.here(f"invalid shape: {shape}", "Give whole numbers, 0 or more.")
            size_bytes *= length
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.size_bytes = size_bytes
        self.writers: tuple[int, ...] = ()

    def __repr__(self) -> str:
        return f"<Tensor {self.name!r} {list(self.shape)} {self.dtype}>"


class Peer(NamedTuple):
    """Another rank, said by its place on the grid: so copies of a rank say it alike.

    `offsets` are steps along axes (behind the last rank comes the first), `places` fixed
    coordinates, `rank` a fixed rank.
    """

    offsets: tuple[tuple[str, int], ...] = ()
    places: tuple[tuple[str, int], ...] = ()
    rank: int | None = None

    def of(self, grid: Grid, ranks: Any) -> Any:
        """The peer of each of the ranks."""
        if self.rank is not None:
            return ranks * 0 + self.rank
        return grid.placed(grid.moved(ranks, dict(self.offsets)), dict(self.places))


class Value(NamedTuple):
    """An attribute besides those that the builder writes."""

    name: str
    kind: Kind
    value: Any


class Operation(NamedTuple):
    """What a node is; nodes that are alike share one. None leaves an attribute out."""

    type: NodeType
    name: str
    op_type: str | None = None
    duration_ns: int = 0
    cpu: bool = False
    flops: int | None = None
    moved_bytes: int | None = None
    collective: int | None = None
    size_bytes: int | None = None
    tag: int | None = None
    family: str | None = None
    peer: Peer | None = None
    inputs: tuple[bytes, bytes, bytes] | None = None
    outputs: tuple[bytes, bytes, bytes] | None = None
    values: tuple[Value, ...] = ()


class Tags(NamedTuple):
    """Where in the workload a node belongs; None where that is not said."""

    stream: int | str | None = None
    phase: str | None = None
    layer: int | None = None
    micro_batch: int | None = None


def texts_of(tensors: Sequence[Tensor]) -> tuple[bytes, bytes, bytes] | None:
    """Shapes and types of tensors as a trace tells them; None for no tensors."""
    return _texts(tuple((tensor.shape, tensor.dtype) for tensor in tensors)) if tensors else None


@lru_cache(4096)
def _texts(tensors: tuple[tuple[tuple[int, ...], str], ...]) -> tuple[bytes, bytes, bytes]:
    """The same of shapes and types. Loops make tensors alike, over and over."""
    shapes = msgspec.json.encode([shape for shape, _ in tensors])
    types = msgspec.json.encode([f"Tensor({DTYPES[dtype][1]})" for _, dtype in tensors])
    return b"", shapes, types


def values_of(attributes: Mapping[str, Any] | None) -> tuple[Value, ...]:
    """Attributes with their kinds: the registry's, or `(Kind, value)` for any name."""
    if not attributes:
        return ()
    found = []
    for name, given in attributes.items():
        if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Kind):
            kind, value = given
        elif name in ATTRIBUTES:
            kind, value = ATTRIBUTES[name].kind, given
        else:
            raise BuildError.here(
                f"no attribute {name!r} in the registry",
                f"Say its kind: {{{name!r}: (Kind.INT64, value)}}.",
            )
        found.append(Value(name, kind, tuple(value) if isinstance(value, list) else value))
    return tuple(found)
