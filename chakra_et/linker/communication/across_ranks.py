"""Which process group, or which other side, a transfer has: what the ranks of a run tell together.

Recordings of gloo name no process group. What a rank alone cannot decide (`candidates`), its
counterparts do: a collective needs one of its type and size on every other member of its group, a
message one of its tag and size on the other side. What fits worse than something else is ruled
out, until nothing changes any more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from chakra_et.linker.communication.accounts import (
    ALIKE,
    USUAL,
    Account,
    Option,
    Told,
    Unit,
    agreed,
    units_of,
)
from chakra_et.linker.communication.candidates import in_order_of_threads
from chakra_et.linker.communication.in_step import rule_out_by_order
from chakra_et.linker.communication.senders import any_sources
from chakra_et.linker.communication.waited_together import rule_out_by_times

Key = tuple[int, str, tuple[int, ...], tuple[object, ...]]
"""A rank, a group, and what a transfer of it looks like."""


def settle(accounts: Sequence[Account]) -> dict[int, dict[int, Told]]:
    """By rank and record-function id, what other ranks tell that the rank itself did not know."""
    if len(accounts) < 2:
        return {}
    of_each = [list(units_of(account)) for account in accounts]
    units = [unit for own in of_each for unit in own]
    ranks = {account.rank for account in accounts}
    _rule_out(units, ranks)
    for account, own in zip(accounts, of_each, strict=True):
        _order_threads(account, own)
    _rule_out(units, ranks)
    rule_out_by_order(units)
    _rule_out(units, ranks)
    if len({account.machine for account in accounts}) == 1:
        rule_out_by_times(units)
        _rule_out(units, ranks)
    for unit in units:
        _prefer_everyone(unit)
    _prefer_as_alike(units)
    sources = any_sources(units)
    news: dict[int, dict[int, Told]] = {}
    for unit in units:
        for transfer in unit.transfers:
            told = sources.get(id(transfer)) or agreed(unit.options, unit.by)
            if transfer.rf_id and (told.group or transfer.group, told.peer or transfer.peer) != (
                transfer.group,
                transfer.peer,
            ):
                news.setdefault(unit.rank, {})[transfer.rf_id] = told
    return news


def _rule_out(units: list[Unit], ranks: set[int]) -> None:
    """Keep of each unit the options that most of it has counterparts for, until all are kept.

    Of these the one counts for which another rank has a counterpart that nothing else can be.
    """
    changed = True
    while changed:
        changed = False
        there = _present(units)
        sure = _present([unit for unit in units if len(unit.options) == 1])
        for unit in units:
            if len(unit.options) > 1:
                fits = [_matched(unit, option, there, ranks) for option in unit.options]
                kept = [o for o, fit in zip(unit.options, fits, strict=True) if fit == max(fits)]
                needed = [option for option in kept if _is_needed(unit, option, there, sure)]
                kept = needed if len(needed) == 1 else kept
                changed |= len(kept) < len(unit.options)
                unit.options = kept


def _present(units: list[Unit]) -> Counter[Key]:
    """How many transfers of each look each rank may have in each group."""
    there: Counter[Key] = Counter()
    for unit in units:
        for option in unit.options:
            for look, number in unit.looks(option).items():
                there[unit.rank, option.group, option.ranks, look] += number
    return there


def _matched(unit: Unit, option: Option, there: Mapping[Key, int], ranks: set[int]) -> int:
    """How many of a unit's transfers have a counterpart on every other rank that was recorded."""
    matched = len(unit.transfers)
    for rank, looks in unit.counterparts(option):
        if rank in ranks:
            found = sum(
                min(number, there[rank, option.group, option.ranks, look])
                for look, number in looks.items()
            )
            matched = min(matched, found)
    return matched


def _is_needed(
    unit: Unit, option: Option, there: Mapping[Key, int], sure: Mapping[Key, int]
) -> bool:
    """Whether another rank has more of a look for sure than this rank has without the unit."""
    own = unit.looks(option)
    return any(
        sure[rank, option.group, option.ranks, other]
        > there[unit.rank, option.group, option.ranks, look] - number
        for rank, looks in unit.counterparts(option)
        for (look, number), other in zip(own.items(), looks, strict=True)
    )


def _order_threads(account: Account, units: list[Unit]) -> None:
    """Rule out what the order of threads does, which are made as the groups are."""
    of_thread = {unit.transfers[0].thread: unit for unit in units if not unit.is_message}
    options = {
        thread: tuple(option.group for option in unit.options)
        for thread, unit in of_thread.items()
        if thread is not None
    }
    for thread, left in in_order_of_threads(options, tuple(account.groups)).items():
        unit = of_thread[thread]
        unit.options = [option for option in unit.options if option.group in left]


def _prefer_everyone(unit: Unit) -> None:
    """Barriers that may be of all ranks, by all that is told, are taken to be: most are."""
    if all(transfer.kind == "BARRIER" for transfer in unit.transfers):
        most = max((len(option.ranks) for option in unit.options), default=0)
        everyone = [option for option in unit.options if len(option.ranks) == most]
        if len(everyone) == 1 < len(unit.options):
            unit.options, unit.by = everyone, USUAL


def _prefer_as_alike(units: list[Unit]) -> None:
    """Messages are taken to be of a group as large as the known ones of all that are alike.

    Ranks run one program: where one sends a tag and a size in a pair, the others do in theirs.
    """
    sizes: dict[tuple[object, ...], set[int]] = defaultdict(set)
    messages = [unit for unit in units if unit.is_message]
    for unit in messages:
        if len({option.group for option in unit.options}) == 1:
            sizes[_look(unit)].add(len(unit.options[0].ranks))
    for unit in messages:
        left = [option for option in unit.options if sizes[_look(unit)] == {len(option.ranks)}]
        if len({option.group for option in left}) == 1 and len(left) < len(unit.options):
            unit.options, unit.by = left, ALIKE


def _look(unit: Unit) -> tuple[object, ...]:
    only = unit.transfers[0]
    return only.kind, only.tag, only.size_bytes
