"""Holding ranks against each other, by whoever converts them: the accounts lie among the parts."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Final

import msgspec

from chakra_et.jobs.crew import Crew
from chakra_et.jobs.executors import MEMORY_FACTOR
from chakra_et.jobs.parts import Parts
from chakra_et.linker.guesses.other_ranks import ASKED, Guesses, Verdict, judged

_TOGETHER: Final = 4 * ASKED
"""So many ranks are judged by one worker, which reads the accounts of the next ones as well."""


class Judgement(msgspec.Struct, frozen=True):
    """Ranks to hold against others: what all ranks are kept by, and the places of these."""

    parts: Parts
    kept: tuple[tuple[str, int], ...]
    """Key and place of each rank's trace: of those to judge, then of the next ones."""
    count: int
    bytes: int = (64 << 20) // MEMORY_FACTOR


def judge_ranks(parts: Parts, kept: Sequence[tuple[str, int]], crew: Crew) -> list[Verdict]:
    """What others say of each rank, in their order; each is held against the next ones."""
    futures: list[Future[list[Verdict]]] = []
    for first in range(0, len(kept), _TOGETHER):
        count = min(_TOGETHER, len(kept) - first)
        wanted = min(count + ASKED, len(kept))
        circle = tuple(kept[(first + step) % len(kept)] for step in range(wanted))
        futures.append(crew.executor.submit(verdicts_of, Judgement(parts, circle, count)))
    return [verdict for future in futures for verdict in future.result()]


def verdicts_of(judgement: Judgement) -> list[Verdict]:
    """What others say of the first of the ranks."""

    @lru_cache(ASKED + 1)
    def guesses(place: int) -> Guesses:
        key, number = judgement.kept[place]
        record = judgement.parts.record(key)
        found = None if record is None else record.reports[number].guesses
        return found or Guesses()

    total = len(judgement.kept)
    steps = range(1, min(ASKED + 1, total))
    return [
        judged(guesses(place), (guesses((place + step) % total) for step in steps))
        for place in range(judgement.count)
    ]
