"""Which process groups a transfer of a backend on the host may be of, by what its rank knows.

Neither file says it. But each worker thread of gloo serves one group, the operation that asked
tells how many ranks the group has or where in it the other side is, and threads are made in the
order of the groups. What remains open, other ranks may tell: `across_ranks`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from chakra_et.linker.communication.process_groups import GroupTable
from chakra_et.model import ProcessGroup
from chakra_et.recording import Facts

THREADS: Final = 2
"""How many worker threads PyTorch gives to each group over gloo."""

Names = tuple[str, ...]


class Transfer(msgspec.Struct):
    """A transfer, and what narrows down its group.

    `thread` is the number of the worker thread that did it; None for a message, which runs beside
    the thread that asked.
    """

    facts: Facts
    group_size: int | None = None
    root: int | None = None
    thread: int | None = None
    options: Names = ()
    """Names of the groups that it may be of, in the order in which they were made."""


def narrow(transfers: Iterable[Transfer], groups: GroupTable) -> None:
    """Set the `options` of transfers by what each tells and by its thread."""
    threads: dict[int, list[Transfer]] = {}
    for transfer in transfers:
        transfer.options = tuple(
            group.name for group in groups.groups.values() if _fits(transfer, group, groups.rank)
        )
        if transfer.thread is not None:
            threads.setdefault(transfer.thread, []).append(transfer)
    for served in threads.values():
        common = set.intersection(*(set(transfer.options) for transfer in served))
        for transfer in served:
            transfer.options = tuple(name for name in transfer.options if name in common)


def in_order_of_threads(options: dict[int, Names], names: Names) -> dict[int, Names]:
    """The options of each worker thread that remain if threads ascend as the groups were made.

    `names` are those of all groups in that order. Nothing is ruled out where that cannot be.
    """
    threads = sorted(thread for thread, left in options.items() if left)
    place = {name: at for at, name in enumerate(names)}
    places = [[place[name] for name in options[thread] if name in place] for thread in threads]
    backward = [[-at for at in reversed(each)] for each in reversed(places)]
    first, last = _earliest(places), _earliest(backward)
    if first is None or last is None:
        return options
    latest = [-at for at in reversed(last)]
    bounds = dict(zip(threads, zip(first, latest, strict=True), strict=True))
    return {
        thread: tuple(
            name
            for name in left
            if thread not in bounds or bounds[thread][0] <= place[name] <= bounds[thread][1]
        )
        for thread, left in options.items()
    }


def _earliest(places: list[list[int]]) -> list[int] | None:
    """The least place that each thread can have, none before the last, no place too often."""
    taken: list[int] = []
    for options in places:
        last = taken[-1] if taken else None
        full = taken.count(last) >= THREADS if last is not None else False
        left = [at for at in options if last is None or at > last or (at == last and not full)]
        if not left:
            return None
        taken.append(left[0])
    return taken


def _fits(transfer: Transfer, group: ProcessGroup, rank: int | None) -> bool:
    """Whether nothing that a transfer tells is against a group."""
    if transfer.facts.group is not None:
        return transfer.facts.group == group.name
    members, count = group.ranks, len(group.ranks) or group.size
    if members and rank is not None and rank not in members:
        return False
    if transfer.group_size is not None and count and transfer.group_size != count:
        return False
    place = transfer.facts.peer_in_group
    if count and max(transfer.root or 0, place or 0) >= count:
        return False
    return place is None or not members or rank is None or members[place] != rank
