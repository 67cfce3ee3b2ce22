"""Sums of gradients over replicas in a recording, each with the gradients that it carries.

They are found by data: an all-reduce reads what was written while gradients were accumulated, of as
many bytes as it sums. So PyTorch records data-parallel training over gloo.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import numpy as np

from chakra_et.build import DTYPES
from chakra_et.columns import Mask, Rows, TextCodes
from chakra_et.converters.pytorch.tensors import tensors_in
from chakra_et.definitions import CollectiveType, EdgeKind, NodeType
from chakra_et.graph import Adjacency
from chakra_et.io.json_text import from_json
from chakra_et.model import Trace
from chakra_et.whatif.chains import program_order
from chakra_et.whatif.edit import MissedError

_WHOLE: Final = re.compile(rb"Tensor\([^)]*(?:int|char|short|bool)")
"""Types of tensors of whole numbers: a map of the parameters in use is no gradient."""
_BYTES = {f"Tensor({called})": size for size, called in DTYPES.values()}


@dataclass(frozen=True)
class GradientSum:
    """One all-reduce: its row, that of the call that asked for it, and the gradients in it.

    `gradients` are the rows that wrote them, in the order in which they lie in the bucket, or else
    in that of their writing, `sizes` their bytes.
    `readers` are the rows that read each one's sum, in their order. They are `copied_out` where one
    row copies each out again, in the same order; otherwise readers see the bucket itself, as the
    optimizer does where gradients are views of it.
    """

    row: int
    call: int
    gradients: list[int]
    sizes: list[int]
    readers: list[list[int]]
    copied_out: bool = False

    @property
    def copies(self) -> list[int]:
        """The row that copies each gradient out again; empty where nothing does."""
        return [row for rows in self.readers for row in rows] if self.copied_out else []


def sums_of(trace: Trace, rank: int) -> list[GradientSum]:
    """The sums of gradients of a rank, in the order in which they were asked for.

    Raises MissedError where an all-reduce carries what is no list of gradients.
    """
    source, target, kind = trace.source_rows(), trace.edges.target, trace.edges.kind
    nodes = trace.nodes
    types = nodes.attributes.dense("comm_type", -1, np.int64)
    sums = np.flatnonzero((nodes.type == NodeType.COMM_COLL) & (types == CollectiveType.ALL_REDUCE))
    sizes = nodes.attributes.dense("comm_size", -1, np.int64)
    data = (kind == EdgeKind.DATA) & (source >= 0)
    read_by = Adjacency.of(len(nodes), target[data], source[data])
    read_from = Adjacency.of(len(nodes), source[data], target[data])
    place = np.argsort(program_order(trace))
    accumulated = _accumulated(trace, place)
    asked = np.full(len(nodes), -1, np.int64)
    memory = _Memory(trace)
    asks = np.isin(kind, (EdgeKind.THREAD, EdgeKind.LAUNCH)) & (source >= 0)
    asked[target[asks]] = source[asks]
    found = []
    for row in sums.tolist():
        reads = read_by.at(row)
        reads = memory.laid_out(reads[np.argsort(place[reads])])
        bytes_of = [memory.bytes_of(one) for one in reads.tolist()]
        code = int(nodes.input_code[row])
        if code >= 0 and _WHOLE.search(nodes.texts[code][2]):
            continue
        if asked[row] < 0 or sum(bytes_of) != sizes[row] or not accumulated[reads].any():
            continue
        readers = read_from.at(row)
        readers = readers[np.argsort(place[readers])].tolist()
        found.append(GradientSum(row, int(asked[row]), reads.tolist(), bytes_of,
                                 memory.readers(reads.tolist(), readers)))  # fmt: skip
    if not found:
        what = "it has no all-reduce"
        if len(sums):
            what = "none of its all-reduces reads gradients that add up to its bytes"
        if accumulated[asked[sums[asked[sums] >= 0]]].any():
            what += "; some are asked for where gradients are: a communication hook changed these"
        raise MissedError(f"sums of gradients in rank {rank}: {what}")
    found.sort(key=lambda one: int(place[one.call]))
    copied_out = _copied_out(trace, found, place)
    return [replace(one, copied_out=copied_out) for one in found]


def _copied_out(trace: Trace, sums: list[GradientSum], place: Rows) -> bool:
    """Whether one row reads each gradient, in the order of the gradients of a step."""
    if any(len(rows) != 1 for one in sums for rows in one.readers):
        return False
    step = steps_of(trace, np.array([one.row for one in sums]))
    at = np.array([place[rows[0]] for one in sums for rows in one.readers])
    of = np.repeat(step, [len(one.readers) for one in sums])
    return bool(((np.diff(at) > 0) | (np.diff(of) != 0)).all())


class _Memory:
    """Where the tensors of nodes lie."""

    def __init__(self, trace: Trace) -> None:
        self._nodes = trace.nodes
        self._known: dict[int, Rows] = {}
        self._sizes: dict[int, int] = {}
        tensors = tensors_in(trace.nodes.texts)
        self._offsets: list[int] = tensors.offsets.tolist()
        # Storage, begin and end of each tensor, in bytes.
        self._tensors = np.stack((tensors.storage, tensors.begin, tensors.end), axis=1)

    def laid_out(self, rows: Rows) -> Rows:
        """Rows in the order in which what they write lies; as given where none tells."""
        places = [self._written(row) for row in rows.tolist()]
        if not places or not all(len(place) for place in places):
            return rows
        storage, begin, _ = np.concatenate(places).T
        _, first, which = np.unique(storage, return_index=True, return_inverse=True)
        return rows[np.lexsort((begin, first[which]))]

    def readers(self, gradients: list[int], rows: list[int]) -> list[list[int]]:
        """Of some rows, those that read where each gradient was written.

        Where none does, and there are as many, each reads one, in their order.
        """
        read = [self._places(self._nodes.input_code[row]) for row in rows]
        places = np.concatenate([self._places(-1), *read])
        reader = np.repeat(rows, [len(each) for each in read])
        found = []
        for gradient in gradients:
            meets = np.zeros(len(places), np.bool_)
            for written in self._written(gradient):
                meets |= _meet(places, written)
            found.append(list(dict.fromkeys(reader[meets].tolist())))
        if not any(found) and len(rows) == len(gradients):
            return [[row] for row in rows]
        return found

    def _places(self, code: int) -> Rows:
        """Storage, begin and end of each tensor of a text, in bytes."""
        first, last = self._offsets[code : code + 2] if code >= 0 else (0, 0)
        return self._tensors[first:last]

    def _written(self, row: int) -> Rows:
        """The largest tensor that a node wrote; of one that tells none, that it has."""
        if row not in self._known:
            mine, given = (self._places(int(c[row])) for c in self._columns)
            places = mine if len(mine) else given
            largest = int(np.argmax(places[:, 2] - places[:, 1])) if len(places) else 0
            self._known[row] = places[largest : largest + 1]
        return self._known[row]

    def bytes_of(self, row: int) -> int:
        """Bytes of the largest tensor that a node reads or writes: of a gradient, itself."""
        return max(self._size(int(column[row])) for column in self._columns)

    def _size(self, code: int) -> int:
        if code not in self._sizes:
            self._sizes[code] = _largest(self._nodes.texts[code]) if code >= 0 else 0
        return self._sizes[code]

    @property
    def _columns(self) -> tuple[TextCodes, TextCodes]:
        return self._nodes.output_code, self._nodes.input_code


def _meet(places: Rows, other: Rows) -> Mask:
    """Which of some places overlap with another one."""
    storage, begin, end = places.T
    there, first, last = other
    return np.asarray((storage == there) & (begin < last) & (first < end))


def _accumulated(trace: Trace, place: Rows) -> Mask:
    """Nodes that run while a gradient is accumulated."""
    named = np.array(["Accumulate" in name for name in trace.nodes.names], np.bool_)
    found = named[trace.nodes.name_code].tolist()
    sources = trace.source_rows()
    calls = (trace.edges.kind == EdgeKind.CALL) & (sources >= 0)
    source, target = sources[calls], trace.edges.target[calls]
    order = np.argsort(place[target])
    for caller, row in zip(source[order].tolist(), target[order].tolist(), strict=True):
        found[row] |= found[caller]
    return np.array(found, np.bool_)


def _largest(text: tuple[bytes, ...]) -> int:
    """Bytes of the largest tensor in a text of shapes and types; 0 where it tells none."""
    try:
        shapes, types = from_json(text[1]), from_json(text[2])
    except (msgspec.DecodeError, IndexError):
        return 0
    sizes = (
        math.prod(shape) * _BYTES[type]
        for shape, type in zip(shapes, types, strict=False)
        if type in _BYTES and all(isinstance(n, int) for n in shape)
    )
    return max(sizes, default=0)


def steps_of(trace: Trace, rows: Rows) -> Rows:
    """The number of the step that each of some rows lies in, by the profiler's steps."""
    names = np.array([name.startswith("ProfilerStep") for name in trace.nodes.names], np.bool_)
    begins = np.flatnonzero(names[trace.nodes.name_code])
    starts = np.sort(trace.nodes.start_ns[begins])
    return np.searchsorted(starts, trace.nodes.start_ns[rows], "right")
