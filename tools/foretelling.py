"""A program after a known change, foretold from before it: by a graph, and by simpler ways."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from chakra_et.kerneltimes import Samples, samples_of
from chakra_et.kerneltimes.files import write_samples
from chakra_et.loading import load
from chakra_et.model import TraceSet
from chakra_et.replay import Replay, replay
from chakra_et.replay.columns import columns_of
from chakra_et.replay.meetings import Meetings
from chakra_et.replay.transfers import transfer_times
from chakra_et.whatif import parse_edit
from chakra_et.whatif.compare import Edited, edit, span_of

if TYPE_CHECKING:
    from recording.interventions import Intervention

NAIVE = ("same span", "in proportion", "plus the change", "main thread", "longer")
"""Simpler ways: the span before; that, in proportion to the busiest thread of the rank that has
most to do, after the edits and before; that, and as much as the edits add to the rank that they
change most; the time of that busiest thread alone; the longer one of it and of all transfers of a
rank.
"""
SHOWN = 0.001
"""Errors that differ by less are alike."""
OTHERS = "others.json"
"""Which share of the processors other programs took while a kind was recorded."""


@dataclass(frozen=True)
class Foretold:
    """Spans in ns of one kind of intervention, float64[recordings]; `naive` has a row for each.

    `shared` are those foretold where ranks share processors, too, if they do. `others` is the share
    of the processors that other programs took meanwhile.
    """

    name: str
    what: str
    edits: tuple[str, ...]
    before: npt.NDArray[np.float64]
    after: npt.NDArray[np.float64]
    foretold: npt.NDArray[np.float64]
    naive: npt.NDArray[np.float64]
    shared: npt.NDArray[np.float64] | None = None
    others: float = 0.0

    @property
    def truth(self) -> float:
        """The span after the change."""
        return float(np.median(self.after))

    @property
    def error(self) -> float:
        """That of the median of what was foretold, as a share of the median of what came."""
        return float(np.median(self.foretold)) / self.truth - 1

    @property
    def shared_error(self) -> float:
        """The same where ranks share processors."""
        assert self.shared is not None
        return float(np.median(self.shared)) / self.truth - 1

    @property
    def size(self) -> float:
        """How far off that is, whichever way."""
        return abs(self.error)

    @property
    def naive_errors(self) -> list[float]:
        """The same of the simpler ways."""
        return [float(np.median(row)) / self.truth - 1 for row in self.naive]

    @property
    def noise(self) -> float:
        """Half of the distance between the quartiles, of both sides, as shares of their medians."""
        spread = [np.subtract(*np.percentile(side, (75, 25))) / np.median(side) / 2
                  for side in (self.before, self.after)]  # fmt: skip
        return float(sum(spread))

    @property
    def beyond(self) -> float:
        """The error beyond the noise."""
        return max(self.size - self.noise, 0.0)

    @property
    def verdict(self) -> str:
        """Beside the best of the simpler ways: closer, as close within the noise, or not."""
        if self.closer:
            return "closer"
        return "as close" if self.better(self.noise) else "not as close"

    @property
    def closer(self) -> bool:
        """Whether it came closer than every simpler way, by as much as the table shows."""
        return self.better(-SHOWN)

    def better(self, slack: float = 0.0) -> bool:
        """Whether no simpler way came closer by more than `slack`."""
        return all(self.size <= abs(error) + slack for error in self.naive_errors)


def foretell(
    name: str, kind: Intervention, folder: Path, processors: str | None = None
) -> Foretold:
    """Foretell each recording after a change from one before it.

    With `processors`, an edit, also where ranks share them.
    """
    before, after = ([load([path]) for path in sorted(folder.glob(f"{side}.*"))]
                     for side in ("before", "after"))  # fmt: skip
    table = folder / "table.json"
    if kind.known:
        _fit(before, folder, table)
    edits = [
        [parse_edit(text.format(table=table, number=number)) for text in kind.edits]
        for number in range(len(before))
    ]
    edited = [edit(traces, some) for traces, some in zip(before, edits, strict=True)]
    spans, real = (_spans([replay(traces) for traces in runs]) for runs in (before, after))
    shared = None
    if processors is not None:
        also = parse_edit(processors)
        shared = _spans([edit(traces, [*some, also]).replayed()
                         for traces, some in zip(before, edits, strict=True)])  # fmt: skip
    others = json.loads((folder / OTHERS).read_text())["share"]
    return Foretold(
        name, kind.what, kind.edits, spans, real, _spans([run.replayed() for run in edited]),
        naive(spans, before, edited), shared, float(others),
    )  # fmt: skip


def _spans(runs: list[Replay]) -> npt.NDArray[np.float64]:
    return np.array([span_of(done) for done in runs], np.float64)


def naive(
    spans: npt.NDArray[np.float64], before: list[TraceSet], edited: list[Edited]
) -> npt.NDArray[np.float64]:
    """What the simpler ways foretell: float64[len(NAIVE), recordings]."""
    main = [(main_ns(was), main_ns(now.traces)) for was, now in zip(before, edited, strict=True)]
    was, busy = (np.array([max(pair[i].values()) for pair in main], np.float64) for i in (0, 1))
    change = [max(now[rank] - ns for rank, ns in was.items()) for was, now in main]
    moved = np.array([transfers_ns(run) for run in edited], np.float64)
    return np.array(
        [spans, spans * busy / was, spans + np.array(change), busy, np.maximum(busy, moved)],
        np.float64,
    )


def _fit(before: list[TraceSet], folder: Path, table: Path) -> None:
    """A table of kernel times of all that may be known: not of what is foretold."""
    samples = [samples_of(traces, "before") for traces in before]
    samples += [samples_of(load([path]), path.stem) for path in sorted(folder.glob("known*.*"))]
    write_samples(Samples.joined(samples), table)


def main_ns(traces: TraceSet) -> dict[int, int]:
    """By rank, the durations of all that its busiest host thread does, without waits."""
    found = {}
    for rank, trace in traces.items():
        columns = columns_of(trace)
        host = ~columns.device & ~columns.communication & columns.counts
        thread = trace.nodes.attributes.dense("thread", 0, np.int64)[host]
        _, place = np.unique(thread, return_inverse=True)
        found[rank] = int(np.bincount(place, columns.duration[host]).max(initial=0))
    return found


def transfers_ns(run: Edited) -> int:
    """The time of all transfers of the rank that has most of it, waits for others left out."""
    meetings = Meetings.of(run.traces)
    total = np.zeros(len(run.traces), np.int64)
    durations = [columns.duration for columns in meetings.ranks]
    common = transfer_times(
        meetings.ranks, durations, meetings.offsets, meetings.matches, run.network
    ).common
    for rows, ns in zip(meetings.members, common.tolist(), strict=True):
        total[list(rows)] += ns
    return int(total.max(initial=0))
