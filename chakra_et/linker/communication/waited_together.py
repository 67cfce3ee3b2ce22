"""Which ranks waited for each other in a collective, by the recorded times.

No rank can end an all-reduce, or another collective that needs what all bring, before the last of
its group has begun it. And ranks that had all begun, and yet ended only after others had begun too,
have waited for those. That tells groups apart which are alike in all else. It needs one clock.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.linker.communication.accounts import WAITS, Option, Unit

_TOGETHER: Final = frozenset(
    {"ALL_REDUCE", "ALL_GATHER", "ALL_TO_ALL", "REDUCE_SCATTER", "REDUCE_SCATTER_BLOCK", "BARRIER"}
)
"""Collectives that nobody can end before all have begun."""
_LATE_NS: Final = 1_000_000
"""Ranks that begin later than this after others let these wait."""
_TIMES: Final = 3
"""How many times longer than the collective itself takes that has to be."""

Times = Rows


def rule_out_by_times(units: list[Unit]) -> None:
    """Rule out the groups of collectives that times refute, and those that leave waits unexplained.

    Only where each member of a group has one thread that may have done it.
    """
    refuted: list[tuple[Unit, list[Option]]] = []
    threads: dict[int, list[Unit]] = defaultdict(list)
    for unit in units:
        if not unit.is_message:
            threads[unit.rank].append(unit)
    for unit in [unit for own in threads.values() for unit in own if len(unit.options) > 1]:
        spans = {option: _spans(unit, option, threads) for option in unit.options}
        left = [o for o, span in spans.items() if span is None or (span[1] >= span[0]).all()]
        widest = max(left, key=lambda option: len(option.ranks), default=None)
        span = None if widest is None else spans[widest]
        if widest is not None and span is not None:
            others = [spans[option] for option in left if option is not widest]
            if others and all(_waited(other, span) for other in others):
                left = [widest]
        if left:
            refuted.append((unit, left))
    for unit, left in refuted:
        if len(left) < len(unit.options):
            unit.options, unit.by = left, WAITS


def _spans(
    unit: Unit, option: Option, threads: dict[int, list[Unit]]
) -> tuple[Times, Times] | None:
    """When the last member began, and the first one ended, each collective that a thread did.

    None where members cannot be lined up.
    """
    looks = unit.looks(option)
    members = []
    for rank in option.ranks:
        mine = [each for each in threads.get(rank, ()) if option in each.options]
        alike = [each for each in mine if each.looks(option) == looks]
        if rank == unit.rank:
            alike = [unit] if len(alike) == 1 else []
        if len(alike) != 1:
            return None
        members.append(alike[0])
    if not members or not any(transfer.kind in _TOGETHER for transfer in unit.transfers):
        return None
    begins, ends = [], []
    for member in members:
        done = [transfer for transfer in member.transfers if transfer.kind in _TOGETHER]
        begins.append([transfer.begin_ns for transfer in done])
        ends.append([transfer.end_ns for transfer in done])
    return np.array(begins, np.int64).max(0), np.array(ends, np.int64).min(0)


def _waited(few: tuple[Times, Times] | None, many: tuple[Times, Times]) -> bool:
    """Whether the ranks of a smaller group waited for those that a larger one has besides."""
    if few is None:
        return False
    took_ns = float(np.median(many[1] - many[0]))
    return bool((many[0] - few[0]).max() >= max(_LATE_NS, _TIMES * took_ns))
