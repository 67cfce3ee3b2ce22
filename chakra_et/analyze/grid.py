"""The grid of a job: where each rank lies on the axes of parallelism, and times along each axis.

A rank that is slow has everyone wait. A whole stage or replica that is slow shows along its axis
alone (MegaScale's 3-D view).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from chakra_et.analyze.stragglers import Work
from chakra_et.columns import Rows
from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet
from chakra_et.scale.families import find_kin
from chakra_et.scale.layout import find_layout
from chakra_et.scale.sources import sources_of
from chakra_et.tables.table import Table, texts

RANK = "rank"
"""In the place of an axis: the rank itself."""


@dataclass(frozen=True)
class Places:
    """Where ranks lie: `axes[axis][rank]` is the coordinate; `evidence` says how axes are known."""

    axes: Mapping[str, Mapping[int, int]]
    evidence: Mapping[str, str]

    def of(self, rank: int) -> str:
        """The coordinates of a rank, in words."""
        return " ".join(f"{axis}{places[rank]}" for axis, places in self.axes.items())


def places_of(traces: TraceSet) -> Places:
    """The coordinates of all ranks, from the metadata, else from groups, collectives and messages.

    Raises ChakraError where ranks are missing, or where groups lie on no grid.
    """
    ranks = list(traces)
    if ranks != list(range(len(ranks))):
        raise ChakraError(
            f"ranks {ranks[:8]} are here: how they lie cannot be told",
            remedy="Give the traces of all ranks, numbered from 0.",
        )
    sources = sources_of(traces)
    layout = find_layout(sources, find_kin(sources), None)
    axes = {
        axis: {rank: layout.grid.coordinate(axis, rank) for rank in ranks}
        for axis, size in layout.grid.axes.items()
        if size > 1
    }
    return Places(axes, {axis: layout.evidence[axis] for axis in axes})


@dataclass(frozen=True)
class Row:
    """A place on an axis: `ranks` of them lie there, and take `mean_ns` of a kind of work.

    `excess_share` is over the median of all places of the axis.
    """

    axis: str
    place: str
    ranks: int
    what: str
    mean_ns: float
    excess_share: float


def grid_rows(work: Work, places: Places) -> Iterator[Row]:
    """Mean times of a step along each axis, then of each rank."""
    alone = {rank: rank for rank in work.ranks}
    for axis, of_rank in {**places.axes, RANK: alone}.items():
        at = np.array([of_rank[rank] for rank in work.ranks], np.int64)
        if axis == RANK or len(np.unique(at)) > 1:
            for what, ns in work.ns.items():
                if ns.any():
                    yield from _along(axis, at, what, ns, places)


def grid_table(rows: Iterable[Row], places: Places) -> Table:
    """The rows as a table; its note says how axes are known."""
    listed = list(rows)
    told = "; ".join(f"{axis}: {why}" for axis, why in places.evidence.items())
    return Table(
        "grid",
        {
            "axis": texts([row.axis for row in listed]),
            "place": texts([row.place for row in listed]),
            "ranks": np.array([row.ranks for row in listed], np.int64),
            "what": texts([row.what for row in listed]),
            "mean_ns": np.array([row.mean_ns for row in listed], np.float64),
            "excess_share": np.array([row.excess_share for row in listed], np.float64),
        },
        f"mean of a step; excess over the median along the axis; {told or 'no axis is told'}",
    )


def _along(axis: str, at: Rows, what: str, ns: Rows, places: Places) -> Iterator[Row]:
    """A row for each place of an axis; that of a rank has all its coordinates."""
    kinds = np.unique(at)
    means = np.array([ns[at == place].mean() for place in kinds])
    usual = float(np.median(means))
    for place, mean in zip(kinds.tolist(), means.tolist(), strict=True):
        name = f"{place} {places.of(place)}".strip() if axis == RANK else str(place)
        excess = mean / usual - 1 if usual else 0.0
        yield Row(axis, name, int((at == place).sum()), what, mean, excess)
