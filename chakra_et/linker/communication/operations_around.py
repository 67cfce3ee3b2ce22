"""What operations and ranges tell, by name and shapes, of the communication that they ask for."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from chakra_et.columns import NO_ROW
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.linker.communication.operand_bytes import NO_TENSOR, total
from chakra_et.linker.communication.views import ANCESTORS, Views
from chakra_et.recording import Facts
from chakra_et.recording.libraries import (
    ANNOTATION,
    COLLECTIVE_OPERATION,
    MESSAGE_RANGE,
    REQUEST,
    operation,
    sized_by_first,
)

_HANDLE: Final = 8
"""Bytes of a tensor that holds one address."""


def merge_operations_around(facts: Facts, views: Views, row: int, dtype: str | None) -> None:
    """Add what the ranges and operations around the launch of device work tell, innermost first.

    A range is called after its collective, `nccl:all_to_all`, and has its inputs; so has an
    operation that is one, `c10d::alltoall_base_` or `vllm::all_reduce`. One of another kind than
    `facts` tells nothing. `dtype` is the type of the elements, where it is known.
    """
    caller = views.launched_in(row)
    for _ in range(ANCESTORS):
        if caller == NO_ROW:
            return
        told = _told_by_name(views.name(caller))
        if told is not None and (facts.kind is None or facts.kind is told.kind):
            if facts.size_bytes is None:
                told = replace(told, size_bytes=_input_bytes(views, caller, told, dtype))
            facts.merge(told)
        caller = views.table.caller.item(caller)


def told_by_request(views: Views, row: int) -> Facts:
    """What an operation that asks for a collective tells by its name and shapes alone.

    Only the root of a scatter has input; the others bring the buffer into which they receive.
    """
    told = _told_by_name(views.name(row))
    if told is None or not isinstance(told.kind, CollectiveType):
        return Facts()
    facts = told.copy()
    facts.size_bytes = _input_bytes(views, row, facts, None)
    if facts.kind is CollectiveType.SCATTER and not facts.size_bytes:
        facts.size_bytes = total(views.argument_bytes_of(row)[:1])
    return facts


@lru_cache(1 << 12)
def _told_by_name(name: str) -> Facts | None:
    """What a name tells; whoever adds what else is told takes a copy."""
    match = ANNOTATION.match(name) or COLLECTIVE_OPERATION.match(name)
    if match is None or operation(match["name"]) is None:
        return None
    source = "operation around" if "::" in name else "annotation"
    facts = Facts(name=match["name"], sources=[source])
    message = MESSAGE_RANGE.match(name)
    if message is not None:
        facts.peer_in_group = int(message["peer"])
    return facts


def _input_bytes(views: Views, row: int, facts: Facts, dtype: str | None) -> int | None:
    """The bytes of this rank's input to the communication that a range or operation is.

    A range has its inputs alone. An operation of the framework's groups has the output before the
    input, where they are two; others have either order.
    """
    name, arguments = views.name(row), views.argument_bytes_of(row, dtype)
    if "::" not in name:
        return total(arguments)
    if name.startswith(REQUEST) and not sized_by_first(facts.kind):
        arguments = arguments[1:2]
    tensors = [part for part in arguments if part != NO_TENSOR]
    return total(_input_of(tensors, facts.kind))


def _input_of(
    tensors: list[int | None], kind: CollectiveType | NodeType | None
) -> list[int | None]:
    """The tensor that an operation communicates, of all that it takes.

    Handles of one number stand before it. Of an input and an output of different sizes an
    all-gather has the smaller one as input, a reduce-scatter the larger one.
    """
    while len(tensors) > 1 and (tensors[0] or _HANDLE + 1) <= _HANDLE:
        tensors = tensors[1:]
    pair = [part for part in tensors[:2] if part]
    if len(pair) == 2 and max(pair) % min(pair) == 0:
        if kind is CollectiveType.ALL_GATHER:
            return [min(pair)]
        if kind is CollectiveType.REDUCE_SCATTER:
            return [max(pair)]
    return tensors[:1]
