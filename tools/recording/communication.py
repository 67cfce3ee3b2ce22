"""Every collective and every kind of message, on the group of all ranks and on parts of it.

Sizes differ from call to call and from group to group, so that a recording tells which is which.
"""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import torch
import torch.distributed as dist

from recording.truth import Communication, message
from recording.window import Step

GROUPS = ((0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3))
"""Members of the groups in which the programs communicate."""


class Member:
    """One rank's part in a group: each method communicates, and returns what it said."""

    def __init__(self, ranks: tuple[int, ...], group: Any, base: int) -> None:
        self.ranks = ranks
        self.group = group
        self.sizes = count(base)
        self.rank = dist.get_rank()
        self.size = len(ranks)

    def new(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """A tensor of a size that no other call of this group has."""
        return torch.ones(next(self.sizes), dtype=dtype)

    def told(self, kind: str, *local: torch.Tensor) -> Communication:
        """A collective whose local input these tensors are."""
        size = sum(t.numel() * t.element_size() for t in local)
        return Communication(kind, size, self.ranks)

    def all_reduce(self) -> Communication:
        tensor = self.new(torch.int64)
        dist.all_reduce(tensor, group=self.group)
        return self.told("ALL_REDUCE", tensor)

    def all_reduce_later(self) -> Communication:
        tensor = self.new()
        dist.all_reduce(tensor, group=self.group, async_op=True).wait()
        return self.told("ALL_REDUCE", tensor)

    def broadcast(self) -> Communication:
        tensor = self.new()
        dist.broadcast(tensor, self.ranks[-1], group=self.group)
        return self.told("BROADCAST", tensor)

    def reduce(self) -> Communication:
        tensor = self.new()
        dist.reduce(tensor, self.ranks[-1], group=self.group)
        return self.told("REDUCE", tensor)

    def all_gather(self) -> Communication:
        tensor = self.new()
        outputs = [torch.empty_like(tensor) for _ in self.ranks]
        dist.all_gather(outputs, tensor, group=self.group)
        return self.told("ALL_GATHER", tensor)

    def all_gather_into_tensor(self) -> Communication:
        tensor = self.new()
        output = torch.empty(self.size * tensor.numel())
        dist.all_gather_into_tensor(output, tensor, group=self.group)
        return self.told("ALL_GATHER", tensor)

    def gather(self) -> Communication:
        tensor, root = self.new(), self.ranks[-1]
        outputs = [torch.empty_like(tensor) for _ in self.ranks] if self.rank == root else None
        dist.gather(tensor, outputs, root, group=self.group)
        return self.told("GATHER", tensor)

    def scatter(self) -> Communication:
        tensor, root = self.new(), self.ranks[-1]
        inputs = [torch.ones_like(tensor) for _ in self.ranks] if self.rank == root else None
        dist.scatter(tensor, inputs, root, group=self.group)
        return self.told("SCATTER", *(inputs or [tensor]))

    def reduce_scatter(self) -> list[Communication]:
        """gloo reduces each part for itself: one node for each, which sum to the whole."""
        tensor = self.new()
        inputs = [torch.ones_like(tensor) for _ in self.ranks]
        dist.reduce_scatter(tensor, inputs, group=self.group)
        return [self.told("REDUCE_SCATTER", part) for part in inputs]

    def reduce_scatter_tensor(self) -> Communication:
        tensor = self.new()
        whole = torch.ones(self.size * tensor.numel())
        dist.reduce_scatter_tensor(tensor, whole, group=self.group)
        return self.told("REDUCE_SCATTER", whole)

    def all_to_all_single(self) -> Communication:
        tensor = torch.ones(self.size * next(self.sizes))
        dist.all_to_all_single(torch.empty_like(tensor), tensor, group=self.group)
        return self.told("ALL_TO_ALL", tensor)

    def barrier(self) -> Communication:
        dist.barrier(group=self.group)
        return Communication("BARRIER", 0, self.ranks)


Call = Callable[[Member], "Communication | list[Communication]"]

COLLECTIVES: tuple[Call, ...] = (
    Member.all_reduce,
    Member.all_reduce_later,
    Member.broadcast,
    Member.reduce,
    Member.all_gather,
    Member.all_gather_into_tensor,
    Member.gather,
    Member.scatter,
    Member.reduce_scatter,
    Member.reduce_scatter_tensor,
    Member.all_to_all_single,
    Member.barrier,
)
"""Every collective that gloo has."""


def members() -> list[Member]:
    """This rank's part in each group that it is in; all ranks make all groups."""
    groups = [None, *(dist.new_group(list(ranks)) for ranks in GROUPS[1:])]
    return [
        Member(ranks, group, 100 * (place + 1))
        for place, (ranks, group) in enumerate(zip(GROUPS, groups, strict=True))
        if dist.get_rank() in ranks
    ]


def collectives() -> Step:
    """Every collective in every group, group by group."""
    mine = members()

    def step() -> list[Communication]:
        told: list[Communication] = []
        for member in mine:
            for do in filter(_supported, COLLECTIVES):
                said = do(member)
                told += said if isinstance(said, list) else [said]
        return told

    return step


_SINCE = {"reduce_scatter": (2, 8), "reduce_scatter_tensor": (2, 6)}
"""The first release with which a collective is tried; gloo of older ones may lack it."""


def _supported(do: Call) -> bool:
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    return (major, minor) >= _SINCE.get(do.__name__, (0, 0))


def messages() -> Step:
    """A message around each group, and one from each rank to the first, which takes any."""
    mine = members()

    def step() -> list[Communication]:
        told = []
        for member in mine:
            told += _ring(member) + _to_the_first(member)
        return told

    return step


def _ring(member: Member) -> list[Communication]:
    """Each rank receives from the one before, and sends to the one after."""
    place, base = member.ranks.index(member.rank), next(member.sizes)
    left, right = member.ranks[place - 1], member.ranks[(place + 1) % member.size]
    sent, received = torch.ones(base + member.rank), torch.empty(base + left)
    receiving = dist.irecv(received, left, group=member.group, tag=left)
    sending = dist.isend(sent, right, group=member.group, tag=member.rank)
    receiving.wait()
    sending.wait()
    return [
        message("RECV", received.numel() * 4, left, left),
        message("SEND", sent.numel() * 4, right, member.rank),
    ]


def _to_the_first(member: Member) -> list[Communication]:
    """All send to the group's first rank, which receives from whoever comes."""
    size, first = next(member.sizes), member.ranks[0]
    if member.rank != first:
        dist.send(torch.ones(size), first, group=member.group, tag=7)
        return [message("SEND", size * 4, first, 7)]
    told = []
    for _ in member.ranks[1:]:
        tensor = torch.empty(size)
        source = dist.recv(tensor, group=member.group, tag=7)
        told.append(message("RECV", size * 4, source, 7, from_any=True))
    return told
