"""Checks of all ranks together."""

from __future__ import annotations

from collections import Counter
from typing import Final

from chakra_et.doctor.capture import Capture
from chakra_et.doctor.check import Check
from chakra_et.validators.finding import Severity

_NAMED: Final = 8


def _two(ranks: list[Capture]) -> str | None:
    count = Counter(capture.rank for capture in ranks)
    twice = sorted(rank for rank, times in count.items() if times > 1)
    if not twice:
        return None
    files = [name for c in ranks if c.rank == twice[0] for name in c.files]
    return f"rank {twice[0]} was recorded more than once: {', '.join(files[:_NAMED])}"


def _worlds(ranks: list[Capture]) -> str | None:
    told = sorted({capture.world_size for capture in ranks if capture.world_size is not None})
    if len(told) < 2:
        return None
    return f"ranks are of runs of {' and '.join(map(str, told))} ranks"


def _missing(ranks: list[Capture]) -> str | None:
    world = max((capture.world_size or 0 for capture in ranks), default=0)
    missing = sorted(set(range(world)) - {capture.rank for capture in ranks})
    if not missing:
        return None
    more = ", …" * (len(missing) > _NAMED)
    return f"no recording of rank {', '.join(map(str, missing[:_NAMED]))}{more} of {world}"


def _steps(ranks: list[Capture]) -> str | None:
    of: dict[tuple[int, ...], list[int]] = {}
    for capture in ranks:
        if capture.steps:
            of.setdefault(tuple(capture.steps), []).append(capture.rank)
    if len(of) < 2:
        return None
    parts = [f"rank {who[0]} has {_shown(steps)}" for steps, who in list(of.items())[:_NAMED]]
    return ", ".join(parts)


def _shown(steps: tuple[int, ...]) -> str:
    return f"step {steps[0]}" if len(steps) == 1 else f"steps {steps[0]} to {steps[-1]}"


def _apart(ranks: list[Capture]) -> str | None:
    """All ranks record at the same time if each begins before any ends."""
    spans = [(c.span_ns, c.rank) for c in ranks if c.span_ns is not None]
    if len(spans) < 2:
        return None
    (begin, _), late = max(spans, key=lambda item: item[0][0])
    (_, end), early = min(spans, key=lambda item: item[0][1])
    if begin <= end:
        return None
    return f"rank {late} begins {(begin - end) / 1e9:.3f} s after rank {early} has ended"


_REMEDY: Final = "Record all ranks of one run in the same steps, as chakra collect does."
CHECKS: Final = (
    Check("rank-twice", Severity.ERROR, "Keep one run in a directory.", look_at_run=_two),
    Check("worlds-differ", Severity.ERROR, "Keep one run in a directory.", look_at_run=_worlds),
    Check(
        "ranks-missing",
        Severity.WARNING,
        "Put the files of all ranks into the directory; look why that rank recorded nothing.",
        look_at_run=_missing,
    ),
    Check("steps-differ", Severity.WARNING, _REMEDY, look_at_run=_steps),
    Check(
        "windows-apart",
        Severity.WARNING,
        _REMEDY + " If they did, the clocks of the machines differ.",
        look_at_run=_apart,
    ),
)
