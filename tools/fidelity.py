"""Link and replay every real trace, and write the table of docs/fidelity.md.

    python tools/fidelity.py            write the table
    python tools/fidelity.py --check    compare the figures with the table; exit 1 where they differ

Needs the real traces, in CHAKRA_ET_DATA or --data.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from page_parts import keep
from traces_index import DATA, trace_files

from chakra_et.conversion import convert
from chakra_et.converters.kineto import read_device
from chakra_et.converters.pytorch import read_host
from chakra_et.model import Trace, TraceSet
from chakra_et.recording.libraries import STEP
from chakra_et.replay import CriticalPath, Figures, replay

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "fidelity.md"
BEGIN, END = "<!-- made by tools/fidelity.py -->", "<!-- end -->"
SETS = ("dlrm8", "torchrec4", "torch213/ddp_2rank", "torch213/tp_2rank")
KINDS = ("thread", "launch", "stream", "event", "sync", "data", "group")


DELAYS = ("late_ns", "contention_ns", "release_ns")


@dataclass
class Row:
    """One trace: what was found, and how well it replays, also by its edges alone."""

    name: str
    trace: Trace
    figures: Figures
    edges_alone: Figures
    path: CriticalPath
    halved: float


@dataclass
class Step:
    """A single step of a trace that has several things to do: how well it replays."""

    name: str
    step: int
    figures: Figures
    path: CriticalPath
    released: int


def inputs(data: Path) -> Iterator[tuple[str, Path | None, Path]]:
    """Name, host trace and profile of every real trace that has a profile."""
    profiles = [*trace_files(data, "*/device*.json.gz"), *trace_files(data, "kineto/*.json.gz")]
    for device in sorted(profiles):
        host = device.with_name(device.name.replace("device", "host"))
        name = str(device.relative_to(data)).removesuffix(".json.gz").replace("/device.", " rank ")
        paired = host.exists() and host != device
        yield name.removesuffix("/device"), host if paired else None, device


def measure(name: str, trace: Trace) -> Row:
    """Replay one trace as it is, by its edges alone, and with device work twice as fast."""
    done, faster = replay(trace), replay(trace, scale=[("is_cpu_op=False", 0.5)])
    alone = replay(without_delays(trace))
    rank = next(iter(done.figures))
    found, halved = done.figures[rank], faster.figures[rank]
    change = halved.span_ns / found.span_ns - 1 if found.span_ns else 0.0
    return Row(name, trace, found, alone.figures[rank], done.paths[rank], change)


def without_delays(trace: Trace) -> Trace:
    """The trace without the delays of starts that only an attribute tells."""
    nodes = trace.nodes.take(np.arange(len(trace.nodes)))
    for name in DELAYS:
        for column in nodes.attributes.named(name):
            nodes.attributes.remove(column, column.rows)
    return Trace(nodes, trace.edges, trace.metadata)


def numbers_of_steps(host: Path | None, device: Path) -> list[int]:
    """The steps that both files of a recording have."""
    files = [set(read_device(device).names.in_order)]
    if host is not None:
        files.append(set(read_host(host).names.in_order))
    numbers = [{int(m[1]) for text in names if (m := STEP.fullmatch(text))} for names in files]
    return sorted(set.intersection(*numbers))


def steps(name: str, host: Path | None, device: Path) -> Iterator[Step]:
    """Every step that both files of a recording have, replayed by itself."""
    for step in numbers_of_steps(host, device):
        trace = convert(host, device, steps=str(step)).trace
        done = replay(trace)
        rank = next(iter(done.figures))
        released = int(trace.nodes.attributes.present("release_ns").sum())
        yield Step(name, step, done.figures[rank], done.paths[rank], released)


def milliseconds(figures: Figures, what: str) -> str:
    """How long starts were delayed by something in all, and how many."""
    found = figures.delays[what]
    return f"{found['ns'] / 1e6:.3f} ({found['count']})" if found["count"] else "0"


def table(rows: list[Row]) -> Iterator[str]:
    """The table of single traces."""
    yield ("| trace | nodes | " + " | ".join(KINDS) + " | inferred | span error | kernel start, "
           "p95 | by edges alone: span | kernel start, p95 | late, ms | contention, ms | outside, "
           "ms | explained | exposed comm, ms: recorded | replayed | path on host | "
           "device x 0.5 |")  # fmt: skip
    yield "|---" * (15 + len(KINDS)) + "|"
    for row in rows:
        f, alone = row.figures, row.edges_alone
        edges = [f.edges.get(kind, {"total": 0, "inferred": 0}) for kind in KINDS]
        total = sum(e["total"] for e in f.edges.values())
        guessed = sum(e["inferred"] for e in f.edges.values())
        cells = [
            row.name,
            str(f.nodes),
            *(str(e["total"]) for e in edges),
            f"{guessed / total if total else 0:.2%}",
            f"{f.span_error:+.3%}",
            f"{f.kernel_start_error['p95']:.3%}",
            f"{alone.span_error:+.3%}",
            f"{alone.kernel_start_error['p95']:.3%}",
            *(milliseconds(f, what) for what in ("late", "contention", "outside")),
            f"{row.path.explained_share:.1%}",
            f"{f.recorded.exposed_comm_ns / 1e6:.3f}",
            f"{f.replayed.exposed_comm_ns / 1e6:.3f}",
            f"{row.path.host_bound_share:.0%}",
            f"{row.halved:+.1%}",
        ]
        yield "| " + " | ".join(cells) + " |"


def summary(rows: list[Row]) -> str:
    """The figures over all traces."""
    with_device = [r for r in rows if r.trace.nodes.attributes.present("stream").any()]
    told = []
    for kind, figures in (("As recorded", "figures"), ("By edges alone", "edges_alone")):
        spans = np.abs([getattr(row, figures).span_error for row in rows])
        starts = [getattr(row, figures).kernel_start_error for row in with_device]
        told.append(
            f"{kind}: span error, median {np.median(spans):.3%}, mean {np.mean(spans):.3%}, worst "
            f"{np.max(spans):.3%}; kernel start error, as a share of the span, worst median "
            f"{max(e['median'] for e in starts):.3%}, worst 95th percentile "
            f"{max(e['p95'] for e in starts):.3%}."
        )
    return f"{len(rows)} traces, {len(with_device)} of them with device work. {' '.join(told)}"


def single_steps(found: list[Step]) -> Iterator[str]:
    """The table of steps by themselves, the worst of each trace."""
    yield ("| trace | steps | span error, worst | kernel start, p95, worst | nodes held by work "
           "outside | waits for it, ms, worst | explained, worst |")  # fmt: skip
    yield "|---|---|---|---|---|---|---|"
    for name in dict.fromkeys(step.name for step in found):
        mine = [step for step in found if step.name == name]
        outside = max(step.figures.delays["outside"]["ns"] for step in mine)
        cells = [
            name,
            str(len(mine)),
            f"{max((s.figures.span_error or 0 for s in mine), key=abs):+.3%}",
            f"{max(s.figures.kernel_start_error['p95'] for s in mine):.3%}",
            str(sum(step.released for step in mine)),
            f"{outside / 1e6:.3f}",
            f"{min(step.path.explained_share for step in mine):.1%}",
        ]
        yield "| " + " | ".join(cells) + " |"


def together(traces: dict[str, TraceSet]) -> Iterator[str]:
    """The table of runs whose ranks are replayed together."""
    yield "| run | ranks | matched | not matched | span error, worst | kernel p95, worst |"
    yield "|---|---|---|---|---|---|"
    for name, ranks in traces.items():
        done = replay(ranks)
        unmatched = "; ".join(f"{n}: {reason}" for reason, n in done.unmatched.items()) or "none"
        worst = max((f.span_error or 0 for f in done.figures.values()), key=abs)
        p95 = max(f.kernel_start_error["p95"] for f in done.figures.values())
        yield (f"| {name} | {len(ranks)} | {done.matched} | {unmatched} | {worst:+.3%} | "
               f"{p95:.3%} |")  # fmt: skip


def content(data: Path) -> str:
    """All that stands between the marks of the document."""
    rows, sets, alone = [], {name: dict[int, Trace]() for name in SETS}, list[Step]()
    for name, host, device in inputs(data):
        trace = convert(host, device).trace
        rows.append(measure(name, trace))
        alone += steps(name, host, device)
        for run in SETS:
            if name.startswith(run + " "):
                sets[run][trace.rank or len(sets[run])] = trace
    runs = {name: TraceSet(traces) for name, traces in sets.items() if traces}
    parts = [summary(rows), "", *table(rows), "", "## Ranks together", "", *together(runs)]
    parts += ["", "## Single steps", "", *single_steps(alone)]
    return "\n".join(parts)


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    return keep(TABLE, BEGIN, END, content(options.data), check=options.check)


if __name__ == "__main__":
    sys.exit(main())
