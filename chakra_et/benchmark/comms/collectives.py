"""Each kind of call by PyTorch's process groups, on tensors of one dimension."""

# mypy: disable-error-code="import-not-found,no-untyped-call,attr-defined"

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from torch.distributed import distributed_c10d as c10d

from chakra_et.benchmark.comms.call import RECV, SEND, Call
from chakra_et.definitions import CollectiveType

Tensors = list[Any]
Begin = Callable[[Any, Call, int, Tensors, Tensors], list[Any]]
"""Takes the process group, the call, the other side's place in it, inputs and outputs."""


def begin(group: Any, call: Call, peer: int, given: Tensors, got: Tensors) -> list[Any]:
    """Ask for a call, without waiting: PyTorch's works, which end when it has ended.

    `given` and `got` are the tensors of `values.input_sizes` and `values.output_sizes`; the same
    ones where the call works in place. Where parts have different sizes, the own part of one is a
    view of the other.
    """
    return _BEGIN[call.kind](group, call, peer, given, got)


def _rooted(root: int, make: Any = c10d.BroadcastOptions) -> Any:
    """Options with a root, by its place in the group."""
    options = make()
    options.rootRank = root
    return options


def _options(make: Any, call: Call) -> Any:
    return _rooted(call.group.ranks.index(call.root or 0), make)


def _all_reduce(group: Any, call: Call, peer: int, given: Tensors, got: Tensors) -> list[Any]:
    if call.coalesced:
        return [group.allreduce_coalesced(got, c10d.AllreduceCoalescedOptions())]
    return [group.allreduce(got, c10d.AllreduceOptions())]


def _reduce(group: Any, call: Call, peer: int, given: Tensors, got: Tensors) -> list[Any]:
    return [group.reduce([t], _options(c10d.ReduceOptions, call)) for t in got]


def _broadcast(group: Any, call: Call, peer: int, given: Tensors, got: Tensors) -> list[Any]:
    return [group.broadcast([t], _options(c10d.BroadcastOptions, call)) for t in got]


def _all_gather(group: Any, call: Call, peer: int, given: Tensors, got: Tensors) -> list[Any]:
    if call.coalesced:
        return [group.allgather_into_tensor_coalesced(got, given)]
    if not call.takes:
        return [group._allgather_base(got[0], given[0], c10d.AllgatherOptions())]
    # Parts of different sizes: each rank hands out its own.
    parts = got[0].split(list(call.takes))
    return [group.broadcast([part], _rooted(root)) for root, part in enumerate(parts)]


def _reduce_scatter(group: Any, call: Call, peer: int, given: Tensors, got: Tensors) -> list[Any]:
    if call.coalesced:
        options = c10d.ReduceScatterOptions()
        return [group.reduce_scatter_tensor_coalesced(got, given, options)]
    if not call.sends:
        return [group._reduce_scatter_base(got[0], given[0], c10d.ReduceScatterOptions())]
    # Parts of different sizes: each rank gets the sum of its own.
    parts = given[0].split(list(call.sends))
    return [
        group.reduce([part], _rooted(root, c10d.ReduceOptions)) for root, part in enumerate(parts)
    ]


def _chunks(whole: Any, members: int) -> Tensors:
    return list(whole.view(members, whole.numel() // members))


def _gather(group: Any, call: Call, peer: int, given: Tensors, got: Tensors) -> list[Any]:
    parts = [_chunks(whole, len(call.group.ranks)) for whole in got]
    return [group.gather(parts, given, _options(c10d.GatherOptions, call))]


def _scatter(group: Any, call: Call, peer: int, given: Tensors, got: Tensors) -> list[Any]:
    parts = [_chunks(whole, len(call.group.ranks)) for whole in given]
    return [group.scatter(got, parts, _options(c10d.ScatterOptions, call))]


def _all_to_all(group: Any, call: Call, peer: int, given: Tensors, got: Tensors) -> list[Any]:
    options = c10d.AllToAllOptions()
    return [group.alltoall_base(got[0], given[0], list(call.takes), list(call.sends), options)]


def _barrier(group: Any, call: Call, peer: int, given: Tensors, got: Tensors) -> list[Any]:
    return [group.barrier(c10d.BarrierOptions())]


def _send(group: Any, call: Call, peer: int, given: Tensors, got: Tensors) -> list[Any]:
    return [group.send(given, peer, call.tag)]


def _receive(group: Any, call: Call, peer: int, given: Tensors, got: Tensors) -> list[Any]:
    return [group.recv(got, peer, call.tag)]


_BEGIN: Final[dict[str, Begin]] = {
    CollectiveType.ALL_REDUCE.name: _all_reduce,
    CollectiveType.REDUCE.name: _reduce,
    CollectiveType.BROADCAST.name: _broadcast,
    CollectiveType.ALL_GATHER.name: _all_gather,
    CollectiveType.REDUCE_SCATTER.name: _reduce_scatter,
    CollectiveType.REDUCE_SCATTER_BLOCK.name: _reduce_scatter,
    CollectiveType.GATHER.name: _gather,
    CollectiveType.SCATTER.name: _scatter,
    CollectiveType.ALL_TO_ALL.name: _all_to_all,
    CollectiveType.BARRIER.name: _barrier,
    SEND: _send,
    RECV: _receive,
}
