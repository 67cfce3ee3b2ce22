"""Foretell runs from the graphs of others, and write the tables of docs/prediction.md.

    python tools/predict.py            write the tables
    python tools/predict.py --check    compare the figures with the tables; exit 1 where they differ

Needs the real traces, in CHAKRA_ET_DATA or --data.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from fidelity import SETS, inputs, numbers_of_steps
from mutations import misdirected, without
from page_parts import keep
from predictors import NAIVE, Prediction, predictions, span_ns, start_error
from traces_index import DATA

import chakra_et
from chakra_et.conversion import convert
from chakra_et.errors import ChakraError
from chakra_et.model import EdgeKind, Trace
from chakra_et.predict import Moved, times_of
from chakra_et.replay import replay

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "prediction.md"
BEGIN, END = "<!-- made by tools/predict.py -->", "<!-- end -->"
DIFFERENT = 0.03
"""Runs whose spans differ by more than this are worth foretelling."""
MEASURES = ("own span", "own starts", "other span", "other starts", "total time")


def runs(data: Path) -> Iterator[tuple[str, dict[Any, Trace]]]:
    """The steps of every recording that has several, then the ranks of every set."""
    ranks: dict[str, dict[Any, Trace]] = {name: {} for name in SETS}
    for name, host, device in inputs(data):
        steps = numbers_of_steps(host, device)
        found = {step: convert(host, device, steps=str(step)).trace for step in steps}
        sound = {step: trace for step, trace in found.items() if len(trace.nodes) > 1}
        if len(sound) > 1:
            yield f"{name}, steps", sound
        run, _, rank = name.partition(" rank ")
        if run in ranks:
            ranks[run][int(rank)] = convert(host, device).trace
    for run, traces in ranks.items():
        if len(traces) > 1:
            yield f"{run}, ranks", traces


def pairs_table(found: list[Prediction]) -> Iterator[str]:
    """One line for each run: errors over all its pairs."""
    simple = " | ".join(f"{name}, median" for name in NAIVE)
    yield ("| run | pairs | spans differ by | error, median | worst | starts, p95, worst | "
           f"{simple} | without counterpart, most |")  # fmt: skip
    yield "|---" * (7 + len(NAIVE)) + "|"
    for run in dict.fromkeys(p.run for p in found):
        mine = [p for p in found if p.run == run]
        errors = np.array([p.error for p in mine])
        naive = np.abs([p.naive for p in mine])
        cells = [
            run,
            str(len(mine)),
            f"{max(abs(p.change) for p in mine):.1%}",
            f"{np.median(np.abs(errors)):.2%}",
            f"{errors[np.argmax(np.abs(errors))]:+.2%}",
            f"{max(p.start_p95 for p in mine):.2%}",
            *(f"{share:.2%}" for share in np.median(naive, axis=0)),
            str(max(p.missing + p.extra for p in mine)),
        ]
        yield "| " + " | ".join(cells) + " |"


def summary(found: list[Prediction], what: str) -> str:
    """The figures over all pairs of a kind."""
    mine = [p for p in found if p.run.endswith(what)]
    far = [p for p in mine if abs(p.change) > DIFFERENT]
    errors = np.abs([p.error for p in mine])
    better = sum(abs(p.error) < p.best_naive for p in far)
    return (
        f"Another {what.removesuffix('s')}: {len(mine)} pairs, median error "
        f"{np.median(errors):.2%}, 95th percentile {np.percentile(errors, 95):.2%}, worst "
        f"{errors.max():.2%}. Of the {len(far)} pairs whose spans differ by more than "
        f"{DIFFERENT:.0%}, the graph is closer than every simpler way in {better}; their median "
        f"error is {np.median([abs(p.error) for p in far]):.2%}, that of the best simpler way of "
        f"each {np.median([p.best_naive for p in far]):.2%}. Starts of device work and "
        f"communication: 95th percentile of each pair, median "
        f"{np.median([p.start_p95 for p in mine]):.2%} of the span, worst "
        f"{max(p.start_p95 for p in mine):.2%}."
    )


@dataclass
class Mutant:
    """A kind of edge changed in one run: what each measure says, mean over the run's traces."""

    run: str
    kind: EdgeKind
    how: str
    edges: int
    measures: tuple[float, ...] | None


@dataclass(frozen=True)
class Recorded:
    """What every change of a run is held against, found once."""

    traces: Mapping[Any, Trace]
    moved: Mapping[tuple[Any, Any], Moved]
    spans_ns: Mapping[Any, int]
    totals_ns: Mapping[Any, Mapping[str | None, int]]

    @classmethod
    def of(cls, traces: Mapping[Any, Trace], pairs: Iterable[tuple[Any, Any]]) -> Recorded:
        """The traces of a run, and the times of `b` in the graph of `a` for some pairs of them."""
        return cls(
            traces,
            {(a, b): times_of(traces[a], traces[b]) for a, b in pairs},
            {key: span_ns(replay(trace)) for key, trace in traces.items()},
            {key: totals_ns(trace) for key, trace in traces.items()},
        )


def mutants(run: str, traces: Mapping[Any, Trace]) -> Iterator[Mutant]:
    """Each kind of edge of a run dropped and misdirected, and first the run as it is."""
    keys = list(traces)
    recorded = Recorded.of(traces, [*pairwise(keys), (keys[-1], keys[0])])
    yield Mutant(run, EdgeKind.CALL, "as it is", 0, measured(recorded, lambda t: t))
    kinds = np.unique(np.concatenate([trace.edges.kind for trace in traces.values()]))
    for number in kinds.tolist():
        kind = EdgeKind(number)
        count = sum(int((trace.edges.kind == number).sum()) for trace in traces.values())
        for how, change in (("dropped", without), ("misdirected", misdirected)):
            found = measured(recorded, partial(change, kind=kind))
            yield Mutant(run, kind, how, count, found)


def measured(recorded: Recorded, change: Callable[[Trace], Trace]) -> tuple[float, ...] | None:
    """What each of `MEASURES` says of changed graphs; None where they cannot run at all."""
    rows = []
    try:
        for (a, b), given in recorded.moved.items():
            own = change(recorded.traces[a])
            figures = next(iter(replay(own).figures.values()))
            other = Moved(change(given.trace), given.place, given.missing, given.extra, 0)
            done = replay(other.trace)
            rows.append((
                abs(figures.span_error or 0), figures.kernel_start_error["p95"],
                abs(span_ns(done) / recorded.spans_ns[b] - 1),
                start_error(other, done, recorded.traces[b]) / recorded.spans_ns[b],
                moved_total(recorded.totals_ns[a], totals_ns(own)),
            ))  # fmt: skip
    except ChakraError:
        return None
    return tuple(np.mean(rows, axis=0).tolist())


def totals_ns(trace: Trace) -> dict[str | None, int]:
    """The total time of each operator."""
    return {item.name: item.total_ns for item in chakra_et.operator_times(trace)}


def moved_total(right: Mapping[str | None, int], wrong: Mapping[str | None, int]) -> float:
    """The share of the operators' total time that goes to other ones."""
    gone = sum(abs(ns - wrong.get(name, 0)) for name, ns in right.items())
    return gone / max(sum(right.values()), 1)


NOTICED = 0.001
"""A measure notices what makes it larger by a tenth of a percent."""


def mutants_table(found: list[Mutant]) -> Iterator[str]:
    """One line for each kind of edge: where each measure notices most."""
    yield ("| edges | changed | in runs | " + " | ".join(MEASURES) + " | noticed by |")
    yield "|---" * (4 + len(MEASURES)) + "|"
    base = {m.run: m.measures for m in found if m.how == "as it is"}
    for kind in sorted({m.kind for m in found if m.how != "as it is"}):
        for how in ("dropped", "misdirected"):
            mine = [m for m in found if (m.kind, m.how) == (kind, how)]
            sound = [(m.measures, base[m.run]) for m in mine]
            grown = [np.subtract(a, b) for a, b in sound if a is not None and b is not None]
            circles = sum(m.measures is None for m in mine)
            most = np.max(grown, axis=0) if grown else np.zeros(len(MEASURES))
            noticed = [name for name, by in zip(MEASURES, most, strict=True) if by > NOTICED]
            if circles:
                noticed.append(f"a circle in {circles}")
            cells = [kind.label, how, str(len(mine)), *(f"{by:+.2%}" for by in most),
                     ", ".join(noticed) or "**nothing**"]  # fmt: skip
            yield "| " + " | ".join(cells) + " |"


def content(data: Path) -> str:
    """All that stands between the marks of the document."""
    found, changed = list[Prediction](), list[Mutant]()
    for run, traces in runs(data):
        print(run, file=sys.stderr)
        found += predictions(run, traces)
        changed += mutants(run, traces)
    parts = [
        *(f"{summary(found, what)}\n" for what in ("steps", "ranks")),
        *pairs_table(found),
        "\n## Edges that are missing or wrong\n",
        *mutants_table(changed),
    ]
    return "\n".join(parts)


def main() -> int:
    """Write or check the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    return keep(TABLE, BEGIN, END, content(options.data), check=options.check)


if __name__ == "__main__":
    sys.exit(main())
