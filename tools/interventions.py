"""Record programs before and after a known change, foretell one from the other, write the table.

    make .venv-torch/stamp && .venv-torch/bin/python tools/interventions.py

Writes the part of docs/prediction.md about interventions; with --print, only shows it. Each side
is recorded several times, before and after in turn, so that a machine that slows down does so for
both. Needs PyTorch, and a machine on which nothing else runs: two or three ranks on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from chakra_et.errors import ChakraError
from chakra_et.kerneltimes import Samples, samples_of
from chakra_et.kerneltimes.files import write_samples
from chakra_et.loading import load
from chakra_et.model import TraceSet
from chakra_et.replay import replay
from chakra_et.replay.columns import columns_of
from chakra_et.replay.meetings import Meetings
from chakra_et.whatif import parse_edit
from chakra_et.whatif.compare import edit, span_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "prediction.md"
BEGIN, END = "<!-- made by tools/interventions.py -->", "<!-- end of interventions -->"
NAIVE = ("same span", "in proportion", "plus the change", "main thread", "longer")
"""Simpler ways: the span before; that, in proportion to the busiest thread of the rank that has
most to do, after the edits and before; that, and as much as the edits add to the rank that they
change most; the time of that busiest thread alone; the longer one of it and of all transfers of a
rank.
"""
GOAL = 0.03
SHOWN = 0.001
"""Errors that differ by less are alike."""
SHARED = "processors=2,known::wait"
"""Two or three ranks run on two processors, and the known operator sleeps."""
OTHERS = "others.json"
"""Which share of the processors other programs took while a kind was recorded."""


@dataclass(frozen=True)
class Foretold:
    """Spans in ns of one kind of intervention, float64[recordings]; `naive` has a row for each.

    `shared` are those foretold where ranks share processors, too. `others` is the share of the
    processors that other programs took meanwhile.
    """

    name: str
    what: str
    edits: tuple[str, ...]
    before: npt.NDArray[np.float64]
    after: npt.NDArray[np.float64]
    foretold: npt.NDArray[np.float64]
    naive: npt.NDArray[np.float64]
    shared: npt.NDArray[np.float64]
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


def record_all(folder: Path, names: list[str], times: int, steps: int) -> None:
    """Record all programs, each side `times` times, in turn."""
    from recording.interventions import INTERVENTIONS
    from recording.ranks import run_ranks

    for name in names:
        kind = INTERVENTIONS[name]
        sides = {"before": kind.before, "after": kind.after}
        sides |= {f"known{place}": shape for place, shape in enumerate(kind.known)}
        jobs: list[Callable[[int], None]] = [
            partial(_record, shape, folder / name / f"{side}.{number}", steps)
            for number in range(times)
            for side, shape in sides.items()
        ]
        print(f"recording {name}: {len(jobs)} times", file=sys.stderr, flush=True)
        with noted_others(folder / name):
            run_ranks(jobs, kind.ranks)


@contextmanager
def noted_others(folder: Path) -> Iterator[None]:
    """Note which share of the processors programs other than this one and its children took."""
    began, busy, own = time.monotonic(), _busy_s(), _own_s()
    yield
    capacity = (time.monotonic() - began) * (os.cpu_count() or 1)
    share = max(_busy_s() - busy - (_own_s() - own), 0.0) / capacity
    (folder / OTHERS).write_text(json.dumps({"share": round(share, 4)}) + "\n")


def _busy_s() -> float:
    """How long the processors of this machine have been at work, as Linux counts."""
    user, nice, system, _, _, irq, soft, *_ = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    """How long they have been at work for this program and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _record(shape: object, folder: Path, steps: int, rank: int) -> None:
    from recording.interventions import Line, Shape
    from recording.window import record

    assert isinstance(shape, (Shape, Line))
    record(shape.step(), folder, steps=steps, rank=rank)


def foretell(name: str, folder: Path) -> Foretold:
    """Foretell each recording after a change from one before it."""
    from recording.interventions import INTERVENTIONS

    kind = INTERVENTIONS[name]
    before, after = ([load([path]) for path in sorted(folder.glob(f"{side}.*"))]
                     for side in ("before", "after"))  # fmt: skip
    table = folder / "table.json"
    if kind.known:
        _fit(before, folder, table)
    edits = [parse_edit(text.format(table=table)) for text in kind.edits]
    edited = [edit(traces, edits).traces for traces in before]
    spans, foretold, real = (
        np.array([span_of(replay(traces)) for traces in runs], np.float64)
        for runs in (before, edited, after)
    )
    beside = [edit(traces, [*edits, parse_edit(SHARED)]).replayed() for traces in before]
    shared = np.array([span_of(done) for done in beside], np.float64)
    main = [(main_ns(was), main_ns(now)) for was, now in zip(before, edited, strict=True)]
    was, busy = (np.array([max(pair[i].values()) for pair in main], np.float64) for i in (0, 1))
    change = [max(now[rank] - ns for rank, ns in was.items()) for was, now in main]
    moved = np.array([transfers_ns(traces) for traces in edited], np.float64)
    naive = np.array(
        [spans, spans * busy / was, spans + np.array(change), busy, np.maximum(busy, moved)],
        np.float64,
    )
    others = json.loads((folder / OTHERS).read_text())["share"]
    return Foretold(
        name, kind.what, kind.edits, spans, real, foretold, naive, shared, float(others)
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


def transfers_ns(traces: TraceSet) -> int:
    """The time of all transfers of the rank that has most of it, waits for others left out."""
    meetings = Meetings.of(traces)
    total = np.zeros(len(traces), np.int64)
    for rows, ns in zip(meetings.members, meetings.recorded().common.tolist(), strict=True):
        total[list(rows)] += ns
    return int(total.max(initial=0))


def table(found: list[Foretold], failed: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """The lines of the table, and what they come to; why some kinds could not be foretold."""
    yield from (f"{name} could not be foretold: {why}\n" for name, why in failed.items())
    if not found:
        return
    errors, beyond = (np.median([getattr(f, name) for f in found]) for name in ("size", "beyond"))
    yield (
        f"{len(found)} kinds, {len(found[0].after)} recordings each side: median error "
        f"{errors:.1%}, beyond the noise {beyond:.1%}; {sum(f.beyond <= GOAL for f in found)} "
        f"kinds within {GOAL:.0%} beyond the noise. Closer than every simpler way in "
        f"{sum(f.closer for f in found)}; no simpler way is closer by more than the noise in "
        f"{sum(f.better(f.noise) for f in found)}. With `{SHARED}`: median error "
        f"{np.median([abs(f.shared_error) for f in found]):.1%}. Other programs took up to "
        f"{max(f.others for f in found):.1%} of the processors while a kind was recorded.\n"
    )
    yield ("| kind | edits | before, ms | after, ms | noise | error | beyond noise "
           "| beside simpler ways | " + " | ".join(NAIVE) + " | processors shared |")  # fmt: skip
    yield "|---" * (9 + len(NAIVE)) + "|"
    for f in found:
        cells = [
            f"{f.name}: {f.what}",
            " ".join(f"`{edit.replace('|', chr(92) + '|')}`" for edit in f.edits),
            f"{np.median(f.before) / 1e6:.1f}",
            f"{f.truth / 1e6:.1f}",
            f"{f.noise:.1%}",
            f"{f.error:+.1%}",
            f"{f.beyond:.1%}",
            f.verdict,
            *(f"{error:+.1%}" for error in f.naive_errors),
            f"{f.shared_error:+.1%}",
        ]
        yield "| " + " | ".join(cells) + " |"


def write_page(lines: Iterator[str]) -> None:
    """Put the table where it stands in the page."""
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(lines) + "\n" + END + tail)


def main() -> int:
    """Record, foretell, write."""
    from recording.interventions import INTERVENTIONS

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=5, help="recordings of each side")
    parser.add_argument("--steps", type=int, default=5, help="steps in each recording")
    parser.add_argument("--only", nargs="+", default=list(INTERVENTIONS), metavar="KIND")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where recordings stay")
    parser.add_argument("--again", action="store_true", help="use the recordings in --keep")
    parser.add_argument("--print", action="store_true", help="write nothing")
    given = parser.parse_args()
    if not given.again and os.getloadavg()[0] > 1:
        print("this machine is busy: times will vary with what else runs", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        if not given.again:
            record_all(folder, given.only, given.times, given.steps)
        found, failed = list[Foretold](), dict[str, str]()
        for name in given.only:
            try:
                found.append(foretell(name, folder / name))
            except ChakraError as error:
                failed[name] = error.problem
    if given.print:
        print("\n".join(table(found, failed)))
    else:
        write_page(table(found, failed))
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
