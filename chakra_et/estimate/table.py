"""What the nodes of a trace are, as far as it decides how long they take: each kind once."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.build import DTYPES
from chakra_et.columns import Rows
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.io.json_text import from_json
from chakra_et.model import Trace

_DTYPE_OF: Final = {f"Tensor({told})": name for name, (_, told) in DTYPES.items()}
_COLLECTIVES: Final = {int(type): type for type in CollectiveType}
_MATRIX: Final = ("matmul", "attention", "")
"""Operators whose `num_ops` are products; "" where the operator is not told."""


class Task(NamedTuple):
    """What nodes that take equally long have in common.

    `flops` are of products, `pairs` of queries and keys (attention). `group` are the ranks of a
    collective, or sender and receiver of a message, `family` what the group is for.
    """

    type: int
    name: str = ""
    op_type: str = ""
    flops: int = 0
    moved_bytes: int = 0
    dtype: str = ""
    pairs: int = 0
    collective: CollectiveType | None = None
    size_bytes: int = 0
    group: tuple[int, ...] = ()
    family: str = ""
    duration_ns: int = 0
    cpu: bool = False


@dataclass
class Tasks:
    """The tasks of a trace, and which of them each node is."""

    tasks: list[Task]
    task_of: Rows


def tasks_of(trace: Trace, rank: int) -> Tasks:
    """Sort the nodes of a rank's trace by what they are."""
    facts = _Facts(trace, rank)
    code = np.zeros(len(trace.nodes), np.int64)
    for column in facts.columns:
        _, numbers = np.unique(column, return_inverse=True)
        _, code = np.unique(code * (int(numbers.max(initial=0)) + 1) + numbers, return_inverse=True)
    _, first = np.unique(code, return_index=True)
    return Tasks([facts.task(row) for row in first.tolist()], code.astype(np.int64))


class _Facts:
    """The columns that tell nodes apart; numbers stand for texts."""

    def __init__(self, trace: Trace, rank: int) -> None:
        nodes, attributes = trace.nodes, trace.nodes.attributes
        self._nodes, self._rank = nodes, rank
        self._groups = {group.name: group for group in trace.groups}
        self._op_types = _Texts(trace, "op_type")
        self._pg_names = _Texts(trace, "pg_name")
        self._numbers = {
            name: attributes.dense(name, default, np.int64)
            for name, default in (
                ("num_ops", 0), ("tensor_size", 0), ("comm_type", -1), ("comm_size", 0),
                ("comm_src", -1), ("comm_dst", -1),
            )
        }  # fmt: skip
        self._cpu = attributes.dense("is_cpu_op", False, np.bool_)
        self.columns: list[npt.NDArray[Any]] = [
            nodes.type, nodes.name_code, nodes.input_code, nodes.duration_ns, self._cpu,
            self._op_types.codes, self._pg_names.codes, *self._numbers.values(),
        ]  # fmt: skip

    def task(self, row: int) -> Task:
        """What a node is."""
        type = int(self._nodes.type[row])
        at = {name: int(column[row]) for name, column in self._numbers.items()}
        task = Task(
            type, str(self._nodes.names[self._nodes.name_code[row]]), self._op_types.at(row),
            duration_ns=int(self._nodes.duration_ns[row]), cpu=bool(self._cpu[row]),
        )  # fmt: skip
        if type == NodeType.COMM_COLL:
            group = self._groups.get(self._pg_names.at(row))
            return task._replace(
                collective=_COLLECTIVES.get(at["comm_type"]),
                size_bytes=at["comm_size"],
                group=() if group is None else group.ranks,
                family="" if group is None else group.description,
            )
        if type in (NodeType.COMM_SEND, NodeType.COMM_RECV):
            pair = (at["comm_src"], at["comm_dst"])
            known = [self._rank if place < 0 else place for place in pair]
            return task._replace(size_bytes=at["comm_size"], group=tuple(known))
        flops = at["num_ops"] if task.op_type in _MATRIX else 0
        shapes, dtype = self._inputs(row)
        return task._replace(
            flops=flops, moved_bytes=at["tensor_size"], dtype=dtype,
            pairs=_pairs(shapes) if task.op_type == "attention" else 0,
        )  # fmt: skip

    def _inputs(self, row: int) -> tuple[list[list[int]], str]:
        """Shapes of the inputs, and the type of the first one's elements."""
        code = int(self._nodes.input_code[row])
        if code < 0:
            return [], ""
        shapes, types = self._nodes.texts[code][1:3]
        try:
            named = from_json(types, type=list[str])
            return (
                from_json(shapes, type=list[list[int]]),
                _DTYPE_OF.get(named[0], "") if named else "",
            )
        except msgspec.DecodeError:
            return [], ""


class _Texts:
    """An attribute that holds texts, as numbers; 0 where a node has none."""

    def __init__(self, trace: Trace, name: str) -> None:
        known = {"": 0}
        self.codes = np.zeros(len(trace.nodes), np.int64)
        for column in trace.nodes.attributes.named(name):
            numbers = [known.setdefault(str(value), len(known)) for value in column.values]
            self.codes[column.rows] = numbers
        self._texts = list(known)

    def at(self, row: int) -> str:
        """The text of a node."""
        return self._texts[int(self.codes[row])]


def _pairs(shapes: list[list[int]]) -> int:
    """Queries times keys, of all heads: the elements of the matrix of scores.

    Shapes are those of `chakra_et.workloads.operators`: queries first, or the gradient of as many,
    and keys in the second or third place.
    """
    if len(shapes) < 3 or any(len(shape) != 4 for shape in shapes[:3]):
        return 0
    return prod(shapes[0][:3]) * shapes[2][2]
