"""Segments of steps on all ranks, as monitors record them: passes, sends, reductions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from chakra_et.analyze.grid import Places, Row, grid_rows, grid_table
from chakra_et.analyze.stragglers import Straggler, Work, stragglers
from chakra_et.columns import Rows
from chakra_et.tables.grouping import codes
from chakra_et.tables.table import Table


class Span(NamedTuple):
    """One segment of a rank in a step: what it is, when it began and how long it took."""

    rank: int
    step: int
    metric: str
    start_ns: int
    ns: int


@dataclass(frozen=True)
class Segments:
    """Segments as columns: `metrics[metric[i]]` is what segment i is, in `step[i]` of `rank[i]`.

    `places` says where ranks lie, `hosts` on which host each runs, as far as that is told;
    `skipped` are files that held no segments.
    """

    rank: Rows
    step: Rows
    metric: Rows
    metrics: list[str]
    ns: Rows
    places: Places
    hosts: Mapping[int, str]
    skipped: tuple[str, ...]

    def works(self) -> dict[int, Work]:
        """By pipeline stage, whose ranks do the same, times by metric, rank and step.

        What not all ranks of a stage have is left out: metrics, and steps.
        """
        stage_of = self.places.axes.get("pp", {})
        ranks = np.unique(self.rank)
        stage = np.array([stage_of.get(rank, 0) for rank in ranks.tolist()], np.int64)
        return {place: self._work(ranks[stage == place]) for place in np.unique(stage).tolist()}

    def _work(self, ranks: Rows) -> Work:
        """Times of some ranks."""
        mine = np.flatnonzero(np.isin(self.rank, ranks))
        row = np.searchsorted(ranks, self.rank[mine])
        steps, column = np.unique(self.step[mine], return_inverse=True)
        shape = (len(self.metrics), len(ranks), len(steps))
        total, seen = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
        np.add.at(total, (self.metric[mine], row, column), self.ns[mine])
        seen[self.metric[mine], row, column] = True
        kept = np.flatnonzero(np.asarray(seen.any(0)).all(0))
        shared = np.asarray(seen[:, :, kept].all((1, 2)))
        found = {
            name: total[place][:, kept] for place, name in enumerate(self.metrics) if shared[place]
        }
        return Work(tuple(ranks.tolist()), tuple(steps[kept].tolist()), found)

    def stragglers(self) -> list[Straggler]:
        """Ranks that are slow in some segment, beside the others of their stage."""
        found = [slow for work in self.works().values() for slow in stragglers(work)]
        return sorted(found, key=lambda s: -s.excess * len(s.steps))

    def grid(self) -> Table:
        """Times along the axes, of each stage by itself."""
        works = self.works()
        rows: list[Row] = []
        for stage, work in works.items():
            named = {f"{what} of pp{stage}" if len(works) > 1 else what: ns
                     for what, ns in work.ns.items()}  # fmt: skip
            rows += grid_rows(replace(work, ns=named), self.places)
        return grid_table(rows, self.places)


def segments_of(
    spans: Sequence[Span],
    axes: Mapping[str, Mapping[int, int]],
    hosts: Mapping[int, str],
    skipped: tuple[str, ...] = (),
) -> Segments:
    """Segments as columns; of `axes`, those along which ranks differ count."""
    real = {axis: places for axis, places in axes.items() if len(set(places.values())) > 1}
    metric, metrics = codes([span.metric for span in spans])
    columns: list[Any] = [np.array(column, np.int64) for column in zip(*(
        (span.rank, span.step, span.ns) for span in spans
    ), strict=True)]  # fmt: skip
    rank, step, ns = columns
    places = Places(real, dict.fromkeys(real, "the records tell"))
    return Segments(rank, step, metric, metrics, ns, places, hosts, skipped)
