"""What limits a run, derived from its critical path and from who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chakra_et.pages.arrivals import Arrivals
from chakra_et.pages.path import RunPath
from chakra_et.pages.ranks import Run
from chakra_et.pages.text import share
from chakra_et.shown import shown

MOST: Final = 0.5
"""What takes this share of the path limits the run."""
LATE_RANK: Final = 0.1
"""A rank that others wait for, for this share of the run, limits it."""
_NAME_WIDTH: Final = 60
_BOUNDS: Final = {
    "host": ("host", "gap"),
    "device": ("device",),
    "communication": ("communication",),
    "unknown": ("late", "contention", "idle"),
}


@dataclass(frozen=True)
class Verdict:
    """What limits a run, in one sentence.

    `kind` is `host`, `device`, `communication`, `unknown` (delays that nothing in the trace
    explains, or a path that covers less than half of the run), `several`, or `none` where there is
    no path. `rank` is one that the others wait for.
    `shares` says how much of the path each kind takes.
    """

    kind: str
    rank: int | None
    sentence: str
    shares: dict[str, float]


def verdict(run: Run, path: RunPath | None, found: Arrivals) -> Verdict:
    """Say what limits a run."""
    if path is None:
        return Verdict("none", None, f"What limits this run is not known: {_no_path(run)}.", {})
    shares = {
        kind: sum(path.bound_ns[bound] for bound in bounds) / path.length_ns
        for kind, bounds in _BOUNDS.items()
    }
    begin, end = run.span
    covered = path.length_ns / (end - begin)
    if covered < MOST:
        return Verdict("unknown", None, _OUTSIDE.format(share(covered)), shares)
    kind = max(shares, key=lambda name: shares[name])
    if shares[kind] < MOST:
        kind = "several"
    rank, waited = late_rank(run, found)
    what = _composition(run, path, kind, shares)
    if rank is not None:
        sentence = (
            f"Rank {rank} limits this run: the others wait for it {waited:.0%} of the time; {what}."
        )
    else:
        sentence = f"{_SUBJECTS[kind].format(_host(run))} this run: {what}."
    return Verdict(kind, rank, sentence, shares)


_SUBJECTS: Final = {
    "host": "{} limits",
    "device": "Device work limits",
    "communication": "Communication limits",
    "unknown": "What the trace does not show limits",
    "several": "No single thing limits",
}


_OUTSIDE: Final = (
    "What limits this run is not in the traces: the critical path covers {} of it, and no edge "
    "tells what that waited for."
)


def late_rank(run: Run, found: Arrivals) -> tuple[int | None, float]:
    """The rank that others wait for most, with the share of the run that they wait for it.

    None where that is little, or where no rank makes the others wait more than the rest together,
    and twice as much as any other: ranks that wait for each other in turn limit nothing alone.
    """
    begin, end = run.span
    awaited = found.awaited_ns
    if len(awaited) < 2 or end <= begin:
        return None, 0.0
    rank = max(awaited, key=lambda one: (awaited[one], -one))
    part = awaited[rank] / (end - begin)
    others = [ns for one, ns in awaited.items() if one != rank]
    alone = awaited[rank] > sum(others) and awaited[rank] >= 2 * max(others)
    return (rank, part) if alone and part >= LATE_RANK else (None, part)


def _host(run: Run) -> str:
    return "The host" if _on_device(run) else "Computing on the host"


def _on_device(run: Run) -> bool:
    return any(times.has_device for times in run.ranks.values())


def _composition(run: Run, path: RunPath, kind: str, shares: dict[str, float]) -> str:
    """What the path consists of, and the name that takes most of it."""
    length = path.length_ns
    words = {
        "host": "host work" if _on_device(run) else "operators and Python on the host",
        "device": "device work",
        "communication": "communication",
        "unknown": "delays that nothing in it explains",
    }
    if kind == "several":
        named = sorted((share, what) for what, share in shares.items() if share >= 0.005)
        told = ", ".join(f"{share:.0%} {words[what]}" for share, what in reversed(named))
        return f"its critical path is {told}"
    told = f"{shares[kind]:.0%} of the critical path is {words[kind]}"
    gap = path.bound_ns["gap"] / length
    if kind == "host" and gap >= 0.1:
        told += f", including {gap:.0%} Python between operations"
    if path.whole.by_name_ns:
        name, took = path.whole.by_name_ns[0]
        told += f", and its largest single part {_short(name)} ({share(took / length)})"
    return told


def _short(name: str) -> str:
    name = shown(name)
    return name if len(name) <= _NAME_WIDTH else name[: _NAME_WIDTH - 1] + "…"


def _no_path(run: Run) -> str:
    if run.problem is not None:
        return f"it cannot be replayed ({run.problem})"
    if not run.nodes:
        return "the trace is empty"
    return "nothing in it takes time"
