"""Analyses of a job as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from chakra_et.analyze.grid import grid_rows, grid_table, places_of
from chakra_et.analyze.hang import find_hang
from chakra_et.analyze.job import Job
from chakra_et.analyze.mfu import utilisation
from chakra_et.analyze.path import job_path
from chakra_et.analyze.segments import Segments
from chakra_et.analyze.skew import skews
from chakra_et.analyze.stragglers import Straggler, stragglers, work_by_step
from chakra_et.errors import ChakraError
from chakra_et.tables.table import Table, texts


def clock_table(job: Job) -> Table:
    """What each rank's clock is ahead of the first rank's, and how fast it drifts."""
    told = job.clocks()
    return Table(
        "clocks",
        {
            "rank": np.array(list(told), np.int64),
            "ahead_ns": np.array([round(c.ahead_ns) for c in told.values()], np.int64),
            "drift_ppm": _reals([c.drift_ppm for c in told.values()]),
            "communications": np.array([c.common for c in told.values()], np.int64),
            "residual_ns": np.array([round(c.residual_ns) for c in told.values()], np.int64),
        },
        "ahead of the first rank; residual: median distance of ends of communications from their "
        "common end",
    )


def skew_table(job: Job) -> Table:
    """How far apart the members of each communication arrived, and what made the last one late."""
    found = skews(job.columns, job.matching.matches, job.clocks())
    return Table(
        "skew",
        {
            "communication": texts([s.place for s in found]),
            "skew_ns": np.array([s.skew_ns for s in found], np.int64),
            "last_rank": np.array([s.last for s in found], np.int64),
            "first_rank": np.array([s.first for s in found], np.int64),
            "cause": texts([s.cause for s in found]),
            "cause_share": _reals([s.share for s in found]),
        },
        "the cause is where the last rank fell behind the first by half of the skew",
    )


def straggler_table(job: Job) -> Table:
    """Ranks whose own work is out of the ordinary in two steps or more."""
    work = work_by_step(job.columns)
    return stragglers_table(stragglers(work), len(work.steps))


def stragglers_table(found: Sequence[Straggler], steps: int) -> Table:
    """What was found of ranks that are slow, in so many steps."""
    return Table(
        "stragglers",
        {
            "rank": np.array([s.rank for s in found], np.int64),
            "what": texts([s.what for s in found]),
            "slow_steps": np.array([len(s.steps) for s in found], np.int64),
            "of_steps": np.full(len(found), steps, np.int64),
            "steps": texts([" ".join(map(str, s.steps)) for s in found]),
            "excess_share": _reals([s.excess for s in found]),
        },
        "own work, waits left out; excess over the median of all ranks",
    )


def grid_of_job(job: Job) -> Table:
    """Times of all ranks along the axes of their grid."""
    places = places_of(job.traces)
    return grid_table(grid_rows(work_by_step(job.columns, transfers=True), places), places)


def records_table(segments: Segments, what: str) -> Table:
    """What records of segments tell: stragglers, or the grid. Raises ChakraError for all else."""
    if what == "grid":
        return segments.grid()
    if what != "stragglers":
        raise ChakraError(
            f"records of ndtimeline do not tell {what}: they have neither operations nor groups",
            remedy="Ask for stragglers or grid, or give recordings of the run.",
        )
    steps = max((len(work.steps) for work in segments.works().values()), default=0)
    table = stragglers_table(segments.stragglers(), steps)
    hosts = [segments.hosts.get(rank, "") for rank in table["rank"].tolist()]
    columns = {"rank": table["rank"], "host": texts(hosts), **table.columns}
    return Table("stragglers", columns, "excess over the median of all ranks of a stage")


def path_table(job: Job) -> Table:
    """The critical path of the job: the stretches that it spends on one rank after the other."""
    _, last, found = job_path(job.traces)
    return Table(
        "path",
        {
            "rank": np.array([s.rank for s in found], np.int64),
            "duration_ns": np.array([s.ns for s in found], np.int64),
            "nodes": np.array([s.nodes for s in found], np.int64),
            "first": texts([s.first for s in found]),
            "last": texts([s.last for s in found]),
            "longest": texts([s.longest for s in found]),
            "longest_ns": np.array([s.longest_ns for s in found], np.int64),
        },
        f"to the end of rank {last}, which ends last",
    )


def mfu_table(job: Job, peak_flops_per_s: float | None = None) -> Table:
    """Floating-point operations of each rank, their rate, and its share of the device's peak."""
    found = utilisation(job.columns)
    rate = _reals([u.per_second or None for u in found.values()])
    return Table(
        "mfu",
        {
            "rank": np.array(list(found), np.int64),
            "flops": _reals([u.flops or None for u in found.values()]),
            "operators": np.array([u.counted for u in found.values()], np.int64),
            "span_ns": np.array([u.span_ns for u in found.values()], np.int64),
            "flops_per_s": rate,
            "mfu_share": rate / peak_flops_per_s if peak_flops_per_s else rate * np.nan,
        },
        "operators: those that tell their operations, by num_ops or shapes",
    )


def hang_table(job: Job) -> Table:
    """The first call of each group that some ranks made and others did not; suspects first."""
    found = find_hang(job.traces)
    suspects = set(found.suspects)
    stalls = sorted(found.stalls, key=lambda s: -len(suspects & set(s.absent)))
    return Table(
        "hang",
        {
            "group": texts([s.group or "default" for s in stalls]),
            "call": np.array([s.place for s in stalls], np.int64),
            "what": texts([s.what for s in stalls]),
            "waiting": texts([_ranks(s.waiting) for s in stalls]),
            "absent": texts([_ranks(s.absent) for s in stalls]),
            "suspects": texts([_ranks([r for r in s.absent if r in suspects]) for s in stalls]),
            "last_of_suspect": texts([_lasts(s.absent, suspects, found.last) for s in stalls]),
        },
        f"suspects: ranks {_ranks(found.suspects)}" if suspects else "no rank holds others up",
    )


TABLES: Final[dict[str, Callable[[Job], Table]]] = {
    "clocks": clock_table,
    "skew": skew_table,
    "stragglers": straggler_table,
    "grid": grid_of_job,
    "path": path_table,
    "mfu": mfu_table,
    "hang": hang_table,
}


def _ranks(ranks: Sequence[int]) -> str:
    return " ".join(map(str, ranks))


def _lasts(absent: Sequence[int], suspects: set[int], last: dict[int, str]) -> str:
    """What the first suspect among some ranks did last."""
    for rank in absent:
        if rank in suspects:
            return last.get(rank, "no trace of it")
    return ""


def _reals(values: Sequence[float | None]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([np.nan if value is None else value for value in values], np.float64)
