"""Known values: what each rank hands in, and what it must have got when a call has ended.

Element k of what one rank has for another is a small whole number that tells both ranks and k, so
that parts in a wrong place are seen, and sums are exact in the type of the elements.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from chakra_et.benchmark.comms.call import RECV, REDUCE_SCATTERS, SEND, Call
from chakra_et.definitions import CollectiveType

Values: TypeAlias = npt.NDArray[np.int64]

_EXACT: Final = {
    "bool": 1, "uint8": 255, "int8": 127, "bfloat16": 256, "float16": 2048,
}  # fmt: skip
"""The largest number up to which a type has every whole number; of others it is far larger."""
_MOST: Final = 13
_PERIOD: Final = 31
_IN_PLACE: Final = (
    CollectiveType.ALL_REDUCE.name,
    CollectiveType.REDUCE.name,
    CollectiveType.BROADCAST.name,
)


def in_place(call: Call) -> bool:
    """Whether what comes out takes the place of what went in."""
    return call.kind in _IN_PLACE


def is_reduce_scatter(call: Call) -> bool:
    """Whether each rank gets the sum of its part."""
    return call.kind in REDUCE_SCATTERS


def output_sizes(call: Call, rank: int) -> tuple[int, ...]:
    """The elements of each tensor that a rank gets."""
    members = len(call.group.ranks)
    if call.kind == RECV or in_place(call):
        return call.tensors
    if is_reduce_scatter(call):
        if call.sends:
            return (call.sends[call.group.ranks.index(rank)],)
        return tuple(elements // members for elements in call.tensors)
    if call.kind == CollectiveType.SCATTER.name:
        return (call.elements // members if rank == call.root else call.elements,)
    gets = call.kind == CollectiveType.ALL_GATHER.name or (
        call.kind == CollectiveType.GATHER.name and rank == call.root
    )
    if gets and not call.takes:
        return tuple(elements * members for elements in call.tensors)
    return (sum(call.takes),) if gets or call.kind == CollectiveType.ALL_TO_ALL.name else ()


def input_sizes(call: Call, rank: int) -> tuple[int, ...]:
    """The elements of each tensor that a rank hands in."""
    takes_only = call.kind == CollectiveType.SCATTER.name and rank != call.root
    if call.kind in (RECV, CollectiveType.BARRIER.name) or takes_only:
        return ()
    return call.tensors


def inputs(call: Call, rank: int) -> list[Values]:
    """What a rank hands in, for each tensor."""
    return [
        _handed_in(call, rank, number, elements)
        for number, elements in enumerate(input_sizes(call, rank))
    ]


def _handed_in(call: Call, rank: int, number: int, elements: int) -> Values:
    ranks = call.group.ranks
    if call.kind == SEND:
        return _part(call, rank, int(call.peer or 0), elements, number)
    if call.sends:
        sizes = call.sends
    elif call.kind in (*REDUCE_SCATTERS, CollectiveType.SCATTER.name):
        sizes = (elements // len(ranks),) * len(ranks)
    else:
        return _part(call, rank, 0, elements, number)
    parts = zip(ranks, sizes, strict=True)
    return np.concatenate([_part(call, rank, to, size, number) for to, size in parts])


def outputs(call: Call, rank: int) -> list[Values]:
    """What a rank must get, for each tensor; nothing where it gets nothing that is defined."""
    if call.kind == CollectiveType.REDUCE.name and rank != call.root:
        return []
    sizes = output_sizes(call, rank)
    return [_got(call, rank, number, size) for number, size in enumerate(sizes)]


def _got(call: Call, rank: int, number: int, size: int) -> Values:
    ranks, root = call.group.ranks, int(call.root or 0)
    if call.kind == RECV:
        return _part(call, int(call.peer or 0), rank, size, number)
    if call.kind == CollectiveType.BROADCAST.name:
        return _part(call, root, 0, size, number)
    if call.kind == CollectiveType.SCATTER.name:
        return _part(call, root, rank, size, number)
    if in_place(call):
        return _sum(call, 0, size, number)
    if is_reduce_scatter(call):
        return _sum(call, rank, size, number)
    target = rank if call.kind == CollectiveType.ALL_TO_ALL.name else 0
    shares = call.takes or (size // len(ranks),) * len(ranks)
    parts = zip(ranks, shares, strict=True)
    return np.concatenate([_part(call, by, target, share, number) for by, share in parts])


def _part(call: Call, source: int, target: int, size: int, number: int) -> Values:
    """What one rank has for another (0 where it has the same for all) in one of the tensors."""
    place = np.arange(min(_PERIOD, size), dtype=np.uint64)
    mixed = place * (461 + 37 * source) + (1009 * source + 917 * target + 613 * number)
    # Multiplicative hashing (Knuth, 6.4): sums over ranks differ from place to place as well.
    bits = mixed * np.uint64(2654435761) % np.uint64(1 << 32) >> np.uint64(13)
    return _repeated((bits % np.uint64(_values(call))).astype(np.int64), size)


def _sum(call: Call, target: int, size: int, number: int) -> Values:
    few = min(_PERIOD, size)
    once = sum(_part(call, rank, target, few, number) for rank in call.group.ranks)
    return _repeated(np.minimum(once, 1) if call.dtype == "bool" else np.asarray(once), size)


def _repeated(once: Values, size: int) -> Values:
    return np.resize(once, size) if size else np.zeros(0, np.int64)


def _values(call: Call) -> int:
    """The number of different values: as many as keep sums exact, at least two."""
    most = _EXACT.get(call.dtype, 1 << 24) // max(len(call.group.ranks), 1)
    return max(2, min(_MOST, most + 1))
