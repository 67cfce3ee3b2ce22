"""What the recording tells of a communication beside its type, size and group.

The node itself tells some of it, the record of PyTorch's process group and the operation that
asked (`c10d::broadcast_`) the rest: types of elements, roots, splits, whether it was waited for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.benchmark.comms.call import ROOTED
from chakra_et.converters.pytorch.requests import read_request
from chakra_et.converters.pytorch.values import decoded, tensors
from chakra_et.definitions import EdgeKind
from chakra_et.io.json_text import from_json
from chakra_et.model import NodeIO, Trace
from chakra_et.recording.libraries import ANNOTATION, RECORD, REQUEST, operation
from chakra_et.recording.numbers import is_int

_CLIMB: Final = 6
"""How far above a communication the operation that asked for it may be."""
_ASKED: Final = (EdgeKind.CALL, EdgeKind.THREAD, EdgeKind.LAUNCH)
_DTYPE: Final = re.compile(r"Tensor\((?!nullptr)(?P<name>(?:[^()<>]|<[^<>]*>)+)\)")
_SPLITS: Final = {"c10d::alltoall_base_": (4, 3)}
"""Where an operation lists how its input, and its output, is divided."""

DTYPES: Final = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16",
    "int": "int32", "long": "int64", "long int": "int64", "short": "int16", "short int": "int16",
    "char": "int8", "signed char": "int8", "byte": "uint8", "unsigned char": "uint8",
    "bool": "bool", "complexfloat": "complex64", "complexdouble": "complex128",
    "complex<float>": "complex64", "complex<double>": "complex128",
    "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2",
}  # fmt: skip
"""PyTorch's names of types by those of recordings, in lower case."""


@dataclass
class Details:
    """What is told; None, or nothing, where it is not."""

    dtype: str | None = None
    tensors: list[int] = field(default_factory=list)
    coalesced: bool = False
    root: int | None = None
    """A place in the group."""
    sends: list[int] = field(default_factory=list)
    takes: list[int] = field(default_factory=list)
    is_async: bool | None = None


def torch_dtype(name: str) -> str | None:
    """PyTorch's name of a type that a recording names: `c10::BFloat16` is `bfloat16`."""
    plain = name.strip().lower().removeprefix("torch.").removeprefix("c10::")
    return DTYPES.get(plain, plain if plain in DTYPES.values() else None)


def details_of(trace: Trace, row: int, kind: str) -> Details:
    """What a communication's node, and those that asked for it, tell; nearest first."""
    found = Details()
    _by_attributes(trace, row, found)
    for at in [row, *_askers(trace, row)]:
        name = trace.nodes.names[int(trace.nodes.name_code[at])]
        given = trace.nodes.io(int(trace.nodes.input_code[at]))
        if given is None:
            continue
        values = decoded(given.values)
        found.coalesced |= "coalesced" in name
        if not found.tensors and (name == RECORD or not name.startswith(REQUEST)):
            _by_tensors(given, values[:1] if name == RECORD else values, found)
        if name == RECORD:
            _by_record(values, kind, found)
        elif name.startswith(REQUEST):
            _by_request(name, given, values, found)
    return found


def _askers(trace: Trace, row: int) -> list[int]:
    """The rows above a communication: what handed it over, and the callers of that."""
    found: list[int] = []
    kinds: tuple[EdgeKind, ...] = _ASKED
    for _ in range(_CLIMB):
        above = [source for source, kind, _ in trace.edges.into(row) if kind in kinds]
        rows = trace.nodes.rows_of(np.array(above, np.uint64)).tolist()
        rows = [r for r in rows if r not in (-1, row, *found) and _asks(trace, r)]
        if not rows:
            break
        found += rows[:1]
        row, kinds = rows[0], (EdgeKind.CALL,)
    return found


def _asks(trace: Trace, row: int) -> bool:
    name = trace.nodes.names[int(trace.nodes.name_code[row])]
    return name == RECORD or ANNOTATION.match(name) is not None


def _by_attributes(trace: Trace, row: int, found: Details) -> None:
    told = trace.nodes[row]
    found.dtype = torch_dtype(told.dtype) if told.dtype else None
    found.coalesced = "coalesced" in (told.collective_name or "")
    found.sends = _numbers(told.in_split_size)
    found.takes = _numbers(told.out_split_size)
    found.is_async = told.is_asynchronized_op


def _numbers(text: str | None) -> list[int]:
    """The whole numbers of a JSON list."""
    try:
        values = from_json(text or "[]")
    except msgspec.DecodeError:
        return []
    return values if isinstance(values, list) and all(map(is_int, values)) else []


def _by_tensors(given: NodeIO, values: list[Any], found: Details) -> None:
    """The elements and the type of the input tensors."""
    names = _DTYPE.findall(given.types.decode("utf-8", "replace"))
    elements = _elements(values)
    if elements and names:
        found.dtype = found.dtype or torch_dtype(names[0])
        found.tensors = elements


def _elements(value: Any) -> list[int]:
    return [elements for elements, _ in tensors(value)]


def _by_record(values: list[Any], kind: str, found: Details) -> None:
    """The root and the splits among the positional inputs of `record_param_comms`."""
    at = next((i for i, v in enumerate(values) if isinstance(v, str) and operation(v)), None)
    if at is None or at < 1:
        return
    found.coalesced |= "coalesced" in values[at]
    if kind in ROOTED and found.root is None and is_int(values[at - 1]):
        found.root = values[at - 1]
    for name, value in zip(("sends", "takes"), values[at + 1 : at + 3], strict=False):
        if isinstance(value, list) and value and all(map(is_int, value)):
            setattr(found, name, getattr(found, name) or value)


def _by_request(name: str, given: NodeIO, values: list[Any], found: Details) -> None:
    """The root, the splits and whether it waited, of the operation that asked."""
    if found.root is None:
        found.root = read_request(name, values).root
    for part, place in zip(("sends", "takes"), _SPLITS.get(name, ()), strict=False):
        value = values[place] if place < len(values) else None
        if isinstance(value, list) and value and all(map(is_int, value)):
            setattr(found, part, getattr(found, part) or value)
    if name == "c10d::alltoall_" and len(values) > 1:
        found.takes = found.takes or _elements(values[0])
        found.sends = found.sends or _elements(values[1])
    kinds = decoded(given.types)
    said = [v for v, k in zip(values, kinds, strict=False) if k == "Bool"]
    if said and found.is_async is None and isinstance(said[-1], bool):
        found.is_async = said[-1]


def default_dtype(size_bytes: int) -> str:
    """The type that stands for elements of which no recording tells: four bytes if they fit."""
    return "float32" if size_bytes % 4 == 0 else "uint8"
