"""Which collectives keep step with those of a process group, by the order of calls on all ranks.

All members of a group call its collectives in one order. So a collective that one rank calls before
the third of a group, and another rank after it, is of another group, though the members may be the
same: a thread of its own that saves a checkpoint does not wait for the training beside it.
"""

from __future__ import annotations

from bisect import bisect
from collections import defaultdict

from chakra_et.linker.communication.accounts import (
    BY_THREAD,
    FIRST,
    ORDER,
    AskedTransfer,
    Option,
    Unit,
)

Calls = dict[int, list[int]]
"""By rank, the record-function ids of the calls of a group: they ascend in the order of calls."""
Place = tuple[int, str, int]
"""A rank, what it calls, and how many of the group it has called by then."""


def rule_out_by_order(units: list[Unit]) -> None:
    """Rule out groups whose collectives others do not keep step with.

    A thread that is out of step once does not wait for those that use the group, and so can call
    none of it: the rest of what it calls is taken to be of other groups too.
    """
    collectives = [unit for unit in units if not unit.is_message]
    if not all(transfer.rf_id for unit in collectives for transfer in unit.transfers):
        return
    several = [unit for unit in collectives if len(unit.options) > 1]
    for option in dict.fromkeys(option for unit in several for option in unit.options):
        sure = [unit for unit in collectives if unit.options == [option]]
        left = [unit for unit in several if option in unit.options]
        for unit, by in _out_of_step(option, sure, left):
            if len(unit.options) > 1:
                unit.options, unit.by = [o for o in unit.options if o != option], by
    _tell_two_apart(collectives)


def _tell_two_apart(units: list[Unit]) -> None:
    """Name two groups of the same members of which nothing is sure but that they are two.

    The group that was made first is taken to be that of the thread that called first.
    """
    pairs: dict[tuple[Option, ...], list[Unit]] = defaultdict(list)
    for unit in units:
        pairs[tuple(unit.options)].append(unit)
    for options, own in pairs.items():
        if not _are_two_alike(options) or any((option,) in pairs for option in options):
            continue
        first = _of_first_thread(own)
        mine = set(map(id, first))
        out = _out_of_step(options[0], first, [unit for unit in own if id(unit) not in mine])
        if out:
            for unit in (*first, *(unit for unit, _ in out)):
                unit.options, unit.by = [options[id(unit) not in mine]], FIRST


def _are_two_alike(options: tuple[Option, ...]) -> bool:
    return len(options) == 2 and options[0].ranks == options[1].ranks


def _of_first_thread(units: list[Unit]) -> list[Unit]:
    """What those threads asked for, one of each rank, that asked first."""
    first: dict[int, AskedTransfer] = {}
    for unit in units:
        for each in unit.transfers:
            first[unit.rank] = min(first.get(unit.rank, each), each, key=_call)
    return [
        unit
        for unit in units
        if {each.asker for each in unit.transfers} == {first[unit.rank].asker}
    ]


def _out_of_step(option: Option, sure: list[Unit], units: list[Unit]) -> list[tuple[Unit, str]]:
    """Those of `units` that are not of the group that `sure` ones are of, and how that is known."""
    calls = _calls(option, sure)
    if not calls:
        return []
    at = [_places(unit, calls[unit.rank]) for unit in units]
    there = {place for places in at for place in places}
    met = [all(_is_met(place, option, there) for place in places) for places in at]
    threads = {_thread(unit) for unit, keeps in zip(units, met, strict=True) if not keeps} - {None}
    return [
        (unit, BY_THREAD if keeps else ORDER)
        for unit, keeps in zip(units, met, strict=True)
        if not keeps or _thread(unit) in threads
    ]


def _calls(option: Option, sure: list[Unit]) -> Calls:
    """When each member called what is of a group; nothing where they do not tell the same."""
    of_rank: dict[int, list[AskedTransfer]] = defaultdict(list)
    for unit in sure:
        of_rank[unit.rank] += unit.transfers
    for own in of_rank.values():
        own.sort(key=_call)
    looks = [[(each.kind, each.size_bytes) for each in own] for own in of_rank.values()]
    if set(of_rank) != set(option.ranks) or any(look != looks[0] for look in looks):
        return {}
    return {rank: [each.rf_id for each in own] for rank, own in of_rank.items()}


def _places(unit: Unit, calls: list[int]) -> list[Place]:
    return [(unit.rank, each.kind, bisect(calls, each.rf_id)) for each in unit.transfers]


def _is_met(place: Place, option: Option, there: set[Place]) -> bool:
    """Whether all members call the same at the same place, by what is not known to be elsewhere."""
    return all((rank, *place[1:]) in there for rank in option.ranks)


def _thread(unit: Unit) -> tuple[int, int] | None:
    """The rank and the thread that asked for what no profile shows a worker thread of."""
    only = unit.transfers[0]
    return None if only.thread is not None or only.asker is None else (unit.rank, only.asker)


def _call(transfer: AskedTransfer) -> int:
    return transfer.rf_id
