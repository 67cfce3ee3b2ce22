"""Arguments of operators that communicate, on fewer ranks than recorded.

An operator that has a part for each rank takes the parts of those that are left, in memory of the
recorded size.
"""

from __future__ import annotations

from typing import Final

from chakra_et.benchmark.comms.call import Call
from chakra_et.benchmark.plan import Operation
from chakra_et.benchmark.schema import Argument
from chakra_et.benchmark.views import Ref
from chakra_et.benchmark.writer import literal

_TENSOR, _TENSORS, _LISTS = "tensor", "tensors", "lists"
_PARTS: Final[dict[str, dict[str, str]]] = {
    "c10d::allreduce_": {},
    "c10d::allreduce_coalesced_": {},
    "c10d::broadcast_": {},
    "c10d::reduce_": {},
    "c10d::barrier": {},
    "c10d::allgather_": {"output_tensors": _LISTS},
    "c10d::gather_": {"output_tensors": _LISTS},
    "c10d::scatter_": {"input_tensors": _LISTS},
    "c10d::reduce_scatter_": {"input_tensors": _LISTS},
    "c10d::_allgather_base_": {"output_tensor": _TENSOR},
    "c10d::_reduce_scatter_base_": {"input_tensor": _TENSOR},
    "c10d::allgather_into_tensor_coalesced_": {"outputs": _TENSORS},
    "c10d::reduce_scatter_tensor_coalesced_": {"inputs": _TENSORS},
    "c10d::alltoall_base_": {"output": _TENSOR, "input": _TENSOR},
    "_c10d_functional::all_reduce": {},
    "_c10d_functional::all_gather_into_tensor": {},
    "_c10d_functional::reduce_scatter_tensor": {"input": _TENSOR},
}
"""The arguments of each operator that have a part for each rank of its group."""
_SPLITS: Final = {
    "output": "output_split_sizes", "input": "input_split_sizes",
    "output_split_sizes": "output_split_sizes", "input_split_sizes": "input_split_sizes",
}  # fmt: skip


def can_be_fewer(operation: Operation) -> bool:
    """Whether an operator is known to work on fewer ranks."""
    return operation.name in _PARTS


def fewer(operation: Operation, argument: Argument, was: Call, now: Call) -> str | None:
    """An argument for fewer ranks; None where it stays as it is."""
    ranks, of = len(now.group.ranks), len(was.group.ranks)
    given = operation.given
    value = given[argument.name]
    if argument.name == "root_rank":
        return str(now.group.ranks.index(int(now.root or now.group.ranks[0])))
    if argument.name == "group_size":
        return str(ranks)
    splits = _SPLITS.get(argument.name) if operation.name == "c10d::alltoall_base_" else None
    counts = given[splits] if splits else None
    if counts:
        left = [c for c, r in zip(counts, was.group.ranks, strict=True) if r in now.group.ranks]
        return f"rows(t[{value.view}], {left})" if isinstance(value, Ref) else str(left)
    form = _PARTS[operation.name].get(argument.name)
    if form == _TENSOR:
        return f"few({literal(value, argument)}, {ranks}, {of})"
    if form == _TENSORS:
        return f"[{', '.join(f'few({literal(v, argument)}, {ranks}, {of})' for v in value)}]"
    if form == _LISTS:
        return literal([each[:ranks] for each in value], argument)
    return None
