"""Stragglers: ranks whose own work takes longer than that of others, in several steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.recording.libraries import STEP
from chakra_et.replay.columns import Columns

Reals = npt.NDArray[np.float64]

ODD: Final = 3.5
"""A robust z-score from which a value is out of the ordinary (MegaScale, NSDI'24)."""
_SCALE: Final = 1.4826
"""The standard deviation of normal values over their median absolute deviation."""
_LEAST: Final = 0.01
"""Deviations below this share of the median are noise, however alike the others are."""


@dataclass(frozen=True)
class Straggler:
    """A rank that was slow in some steps; `excess` is the mean of the shares by which it was."""

    rank: int
    what: str
    steps: tuple[int, ...]
    excess: float

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rank": self.rank,
            "what": self.what,
            "steps": list(self.steps),
            "excess": self.excess,
        }


@dataclass(frozen=True)
class Work:
    """The own work of all ranks by step, in ns: a row for each rank, a column for each step.

    `ns` has a table for each kind of work. Steps that not all ranks have are left out.
    """

    ranks: tuple[int, ...]
    steps: tuple[int, ...]
    ns: Mapping[str, Rows]


def work_by_step(columns: Mapping[int, Columns], *, transfers: bool = False) -> Work:
    """How long each rank worked in each step; without marks of steps, the whole trace is one.

    `host` is the time of the thread that does most, without its waits; `device` is device work that
    does not communicate; `transfers`, if asked for, holds waits for other ranks, too.
    """
    steps = {rank: _steps(c) for rank, c in columns.items()}
    common = sorted(set.intersection(*map(set, steps.values()))) if steps else []
    kinds = ("host", "device", "transfers") if transfers else ("host", "device")
    ns = {what: np.zeros((len(columns), max(len(common), 1)), np.int64) for what in kinds}
    for i, (rank, c) in enumerate(columns.items()):
        rows = {
            "host": _main_thread(c) & ~c.communication,
            "device": c.device & ~c.communication,
            "transfers": c.communication,
        }
        spans = [steps[rank][step] for step in common] or [(int(c.start.min(initial=0)), 1 << 62)]
        for j, (begin, end) in enumerate(spans):
            inside = (c.begin >= begin) & (c.begin < end) & c.timed
            for what in kinds:
                ns[what][i, j] = c.duration[inside & rows[what]].sum()
    return Work(tuple(columns), tuple(common) or (0,), ns)


def stragglers(work: Work) -> list[Straggler]:
    """Ranks that are out of the ordinary in at least two steps, or in the only one.

    With three ranks or more, each step is compared across ranks, so that a step that is slow
    everywhere is nobody's fault; with two, all steps of both are.
    """
    found = []
    for what, values in work.ns.items():
        if len(work.ranks) < 2 or not values.any():
            continue
        usual = (
            np.median(values, axis=0, keepdims=True) if len(work.ranks) > 2 else np.median(values)
        )
        share = values / np.maximum(usual, 1) - 1
        odd = _robust_z(share) > ODD
        least = min(2, len(work.steps))
        for i, rank in enumerate(work.ranks):
            slow = np.flatnonzero(odd[i])
            if len(slow) >= least:
                steps = tuple(work.steps[j] for j in slow.tolist())
                found.append(Straggler(rank, what, steps, float(share[i, slow].mean())))
    return sorted(found, key=lambda s: -s.excess * len(s.steps))


def _robust_z(values: Reals) -> Reals:
    """How far values lie from their median, in deviations as the median of them tells."""
    middle = np.median(values)
    deviation = max(float(np.median(np.abs(values - middle))) * _SCALE, _LEAST)
    return np.asarray((values - middle) / deviation)


def _steps(columns: Columns) -> dict[int, tuple[int, int]]:
    """Begin and end of each step that the profiler marked."""
    nodes = columns.trace.nodes
    numbers = {
        code: int(m[1]) for code, name in enumerate(nodes.names) if (m := STEP.fullmatch(name))
    }
    found: dict[int, tuple[int, int]] = {}
    for row in np.flatnonzero(np.isin(nodes.name_code, list(numbers))).tolist():
        if not columns.device[row]:
            span = int(columns.start[row]), int(columns.end[row])
            found.setdefault(numbers[int(nodes.name_code[row])], span)
    return found


def _main_thread(columns: Columns) -> npt.NDArray[np.bool_]:
    """The rows of the thread that does most."""
    thread = columns.trace.nodes.attributes.dense("thread", -1, np.int64)
    host = ~columns.device & columns.counts
    threads, place = np.unique(thread[host], return_inverse=True)
    if not len(threads):
        return host
    busy = np.bincount(place, columns.duration[host].astype(np.float64))
    return np.asarray(host & (thread == threads[int(np.argmax(busy))]))
