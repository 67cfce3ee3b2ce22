"""Fewer ranks than recorded: each call as it was, among those that are left, or as a delay."""

from __future__ import annotations

from msgspec.structs import replace

from chakra_et.benchmark.choices import ShrinkAs
from chakra_et.benchmark.comms.call import DELAY, REDUCE_SCATTERS, Call, Group
from chakra_et.benchmark.comms.listing import Listing
from chakra_et.definitions import CollectiveType
from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet


def kept_traces(traces: TraceSet, ranks: int) -> TraceSet:
    """The traces of the first so many ranks. Raises ChakraError where there are not so many."""
    if ranks > len(traces):
        raise ChakraError(
            f"--shrink {ranks}, but there are traces of {len(traces)} ranks",
            remedy=f"Give --shrink {len(traces)} or less, or the files of more ranks.",
        )
    return TraceSet({rank: traces[rank] for rank in list(traces)[:ranks]})


def shrink(listing: Listing, how: ShrinkAs) -> Listing:
    """The calls of the ranks of a listing among themselves. What each pair exchanges stays."""
    kept = set(listing.calls)
    calls = {
        rank: [shrunk(call, rank, kept, how) for call in calls]
        for rank, calls in listing.calls.items()
    }
    return Listing(listing.world_size, calls, listing.skipped)


def shrunk(call: Call, rank: int, kept: set[int], how: ShrinkAs) -> Call:
    """A call of a rank as those that are left can make it; itself where all are there."""
    left = tuple(member for member in call.group.ranks if member in kept)
    if len(left) == len(call.group.ranks):
        return call
    if how is ShrinkAs.DELAY or call.is_message or len(left) < 2:
        return replace(call, kind=DELAY, recorded_as=call.kind, group=Group("", (rank,)))
    sends, takes = (_of(left, call, parts) for parts in (call.sends, call.takes))
    root = call.root if call.root is None or call.root in kept else left[0]
    return replace(
        call,
        group=Group(call.group.name, left),
        sends=sends if len(set(sends)) > 1 or _is_exchange(call) else (),
        takes=takes if len(set(takes)) > 1 or _is_exchange(call) else (),
        tensors=_tensors(call, rank, left, root, sends),
        root=root,
        shrunk_from=len(call.group.ranks),
    )


def _of(left: tuple[int, ...], call: Call, parts: tuple[int, ...]) -> tuple[int, ...]:
    """The parts of the members that are left."""
    pairs = zip(call.group.ranks, parts, strict=False)
    return tuple(part for member, part in pairs if member in left)


def _is_exchange(call: Call) -> bool:
    return call.kind == CollectiveType.ALL_TO_ALL.name


def _tensors(
    call: Call, rank: int, left: tuple[int, ...], root: int | None, sends: tuple[int, ...]
) -> tuple[int, ...]:
    """This rank's input: the parts for those that are left, where it has a part for each."""
    members = len(call.group.ranks)
    if sends:
        return (sum(sends),)
    if call.kind in REDUCE_SCATTERS:
        return tuple(elements // members * len(left) for elements in call.tensors)
    if call.kind == CollectiveType.SCATTER.name:
        share = call.elements // members if rank == call.root else call.elements
        return (share * len(left) if rank == root else share,)
    return call.tensors
