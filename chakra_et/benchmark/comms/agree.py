"""What the sides of a collective or a message tell each other: types, roots, shares.

One rank's recording tells only what went in and out there. Put together, the sides of one call tell
all that each needs to run it; where they contradict each other, it would never end, or end wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from chakra_et.benchmark.comms.call import ROOTED, Call
from chakra_et.benchmark.comms.listing import Listing
from chakra_et.definitions import CollectiveType

Sides = Mapping[int, Call]
"""The calls of one collective or message, by rank."""


def agree(listing: Listing) -> list[str]:
    """Fill what one side of a call tells to the others; texts of what contradicts itself.

    The calls of `listing` are replaced. Only sides that are there take part: whether all are is
    another question (`meeting`).
    """
    problems: list[str] = []
    filled: dict[tuple[int, int], Call] = {}
    for places in _meetings(listing):
        sides = {rank: listing.calls[rank][at] for rank, at in places.items()}
        try:
            agreed = _agreed(sides)
        except ValueError as error:
            problems.append(f"{_first(sides)}: {error}")
            continue
        filled |= {(rank, places[rank]): call for rank, call in agreed.items()}
    for rank, calls in listing.calls.items():
        listing.calls[rank] = [filled.get((rank, at), call) for at, call in enumerate(calls)]
    return problems


def _meetings(listing: Listing) -> Iterator[dict[int, int]]:
    """By rank, the place in its list of each side of one call."""
    found: dict[tuple[object, ...], dict[int, int]] = {}
    for rank, calls in listing.calls.items():
        for at, call in enumerate(calls):
            found.setdefault(call.meeting, {})[rank] = at
    yield from found.values()


def _first(sides: Sides) -> str:
    rank, call = next(iter(sides.items()))
    return call.text(rank)


def _agreed(sides: Sides) -> dict[int, Call]:
    """The calls with what the others tell. Raises ValueError where they contradict each other."""
    first = next(iter(sides.values()))
    kinds = {call.kind for call in sides.values()}
    if first.is_message:
        return dict(sides)
    if len(kinds) > 1:
        raise ValueError(f"ranks call {', '.join(sorted(kinds))}")
    sides = _one_type(sides)
    if first.kind in ROOTED:
        sides = _one_root(sides)
    return _SHARED.get(first.kind, _alike)(sides)


def _one_type(sides: Sides) -> dict[int, Call]:
    """One type of elements for all; those that tell none take that of the others."""
    told = {call.dtype for call in sides.values() if call.dtype_told and call.elements}
    if len(told) > 1:
        raise ValueError(f"ranks give elements of {' and '.join(sorted(told))}")
    if not told:
        return dict(sides)
    return {rank: call.of_type(next(iter(told))) for rank, call in sides.items()}


def _one_root(sides: Sides) -> dict[int, Call]:
    """One root; without any, the rank whose part tells it, else the group's first."""
    told = {call.root for call in sides.values() if call.root is not None}
    if len(told) > 1:
        raise ValueError(f"ranks name different roots: {sorted(told)}")
    first = next(iter(sides.values()))
    root = next(iter(told), None)
    if root is None:
        largest = max(sides, key=lambda rank: sides[rank].elements)
        by_size = first.kind == CollectiveType.SCATTER.name
        root = largest if by_size else first.group.ranks[0]
    return {rank: replace(call, root=root) for rank, call in sides.items()}


def _alike(sides: Sides) -> dict[int, Call]:
    """The tensors of a collective that all ranks give the same to."""
    if all(call.coalesced for call in sides.values()):
        told = {call.tensors for call in sides.values()}
        if len(told) > 1:
            raise ValueError(f"ranks give tensors of {' and '.join(map(str, sorted(told)))}")
        return dict(sides)
    return {rank: _as_one(call) for rank, call in sides.items()}


def _as_one(call: Call) -> Call:
    return replace(call, tensors=(call.elements,), coalesced=False)


def _gathered(sides: Sides) -> dict[int, Call]:
    """How much comes from each member, where it is not the same from all."""
    if all(call.coalesced for call in sides.values()):
        return _alike(sides)
    ranks = next(iter(sides.values())).group.ranks
    shares = [sides[rank].elements if rank in sides else None for rank in ranks]
    known = [share for share in shares if share is not None]
    takes = tuple(known[0] if share is None else share for share in shares)
    uneven = takes if len(set(takes)) > 1 else ()
    return {rank: replace(_as_one(call), takes=uneven) for rank, call in sides.items()}


def _scattered(sides: Sides) -> dict[int, Call]:
    """How much goes to each member, where it is not the same to all."""
    members = len(next(iter(sides.values())).group.ranks)
    tensors = [elements for call in sides.values() for elements in call.tensors]
    together = all(call.coalesced for call in sides.values())
    if together and all(elements % members == 0 for elements in tensors):
        return _alike(sides)
    found = {}
    for rank, call in sides.items():
        parts = call.tensors if len(call.tensors) == members else ()
        parts = parts or evenly(call.elements, members)
        found[rank] = replace(_as_one(call), sends=parts if len(set(parts)) > 1 else ())
    if len({call.sends for call in found.values()}) > 1:
        raise ValueError("ranks divide it in different ways")
    return found


def _handed_out(sides: Sides) -> dict[int, Call]:
    """A scatter: the root has all parts, which are alike."""
    first = next(iter(sides.values()))
    members, root = len(first.group.ranks), sides.get(first.root or 0)
    shares = {call.elements for rank, call in sides.items() if rank != first.root}
    if root is not None:
        shares |= {root.elements // members} if root.elements % members == 0 else {-1}
    if len(shares) > 1:
        raise ValueError("the parts of the root are not what the others expect")
    return {rank: _as_one(call) for rank, call in sides.items()}


def _exchanged(sides: Sides) -> dict[int, Call]:
    """What each rank sends to and takes from each other, of an all-to-all."""
    ranks = next(iter(sides.values())).group.ranks
    sends = {rank: _sends(call, len(ranks)) for rank, call in sides.items()}
    agreed = {}
    for place, rank in enumerate(ranks):
        if rank in sides:
            told = _takes(sides[rank], len(ranks))
            takes = list(told or evenly(sides[rank].elements, len(ranks)))
            for at, other in enumerate(ranks):
                given = sends[other][place] if other in sends else takes[at]
                if told and given != told[at]:
                    what = f"{given} elements to rank {rank}, which takes {told[at]}"
                    raise ValueError(f"rank {other} sends {what}")
                takes[at] = given
            agreed[rank] = replace(_as_one(sides[rank]), sends=sends[rank], takes=tuple(takes))
    return agreed


def _sends(call: Call, members: int) -> tuple[int, ...]:
    """How many elements a rank sends to each member: as recorded, else evenly."""
    if len(call.sends) != members:
        return evenly(call.elements, members)
    row = _row(call)
    if sum(call.sends) * row != call.elements:
        raise ValueError(f"its splits {list(call.sends)} do not add up to {call.elements} elements")
    return tuple(rows * row for rows in call.sends)


def _takes(call: Call, members: int) -> tuple[int, ...]:
    """How many elements a rank takes from each member; nothing where it does not say."""
    if len(call.takes) != members or len(call.sends) != members or not sum(call.sends):
        return ()
    return tuple(rows * _row(call) for rows in call.takes)


def _row(call: Call) -> int:
    """Splits count rows: the elements of one."""
    rows = sum(call.sends)
    return call.elements // rows if rows else 1


def evenly(elements: int, members: int) -> tuple[int, ...]:
    """Parts that differ by one at most, the larger ones first."""
    share, rest = divmod(elements, members)
    return tuple(share + (place < rest) for place in range(members))


_SHARED: Final = {
    CollectiveType.ALL_GATHER.name: _gathered,
    CollectiveType.GATHER.name: _gathered,
    CollectiveType.REDUCE_SCATTER.name: _scattered,
    CollectiveType.REDUCE_SCATTER_BLOCK.name: _scattered,
    CollectiveType.SCATTER.name: _handed_out,
    CollectiveType.ALL_TO_ALL.name: _exchanged,
}
