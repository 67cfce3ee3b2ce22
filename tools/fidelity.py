"""Link and replay every real trace, and write the table of docs/fidelity.md.

    python tools/fidelity.py            write the table
    python tools/fidelity.py --check    compare the figures with the table; exit 1 where they differ

Needs the real traces, in CHAKRA_ET_DATA or --data.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chakra_et.conversion import convert
from chakra_et.model import Trace, TraceSet
from chakra_et.replay import Figures, replay

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "fidelity.md"
BEGIN, END = "<!-- made by tools/fidelity.py -->", "<!-- end -->"
SETS = ("dlrm8", "torchrec4", "torch213/ddp_2rank", "torch213/tp_2rank")
KINDS = ("thread", "launch", "stream", "event", "sync", "data", "group")


@dataclass
class Row:
    """One trace: what was found, and how well it replays."""

    name: str
    trace: Trace
    figures: Figures
    host_bound: float
    halved: float


def inputs(data: Path) -> Iterator[tuple[str, Path | None, Path]]:
    """Name, host trace and profile of every real trace that has a profile."""
    profiles = [*data.glob("**/device*.json.gz"), *data.glob("kineto/*.json.gz")]
    for device in sorted(profiles):
        host = device.with_name(device.name.replace("device", "host"))
        name = str(device.relative_to(data)).removesuffix(".json.gz").replace("/device.", " rank ")
        paired = host.exists() and host != device
        yield name.removesuffix("/device"), host if paired else None, device


def measure(name: str, trace: Trace) -> Row:
    """Replay one trace as it is, and with device work twice as fast."""
    done, faster = replay(trace), replay(trace, scale=[("is_cpu_op=False", 0.5)])
    rank = next(iter(done.figures))
    found, halved = done.figures[rank], faster.figures[rank]
    change = halved.span_ns / found.span_ns - 1 if found.span_ns else 0.0
    return Row(name, trace, found, done.paths[rank].host_bound_share, change)


def table(rows: list[Row]) -> Iterator[str]:
    """The table of single traces."""
    yield ("| trace | nodes | " + " | ".join(KINDS) + " | inferred | span error | kernel start, "
           "median | p95 | exposed comm, ms: recorded | replayed | unexplained | path on host | "
           "device x 0.5 |")  # fmt: skip
    yield "|---" * (12 + len(KINDS)) + "|"
    for row in rows:
        f = row.figures
        edges = [f.edges.get(kind, {"total": 0, "inferred": 0}) for kind in KINDS]
        total = sum(e["total"] for e in f.edges.values())
        guessed = sum(e["inferred"] for e in f.edges.values())
        cells = [
            row.name,
            str(f.nodes),
            *(str(e["total"]) for e in edges),
            f"{guessed / total if total else 0:.2%}",
            f"{f.span_error:+.3%}",
            f"{f.kernel_start_error['median']:.3%}",
            f"{f.kernel_start_error['p95']:.3%}",
            f"{f.recorded.exposed_comm_ns / 1e6:.3f}",
            f"{f.replayed.exposed_comm_ns / 1e6:.3f}",
            str(f.unexplained),
            f"{row.host_bound:.0%}",
            f"{row.halved:+.1%}",
        ]
        yield "| " + " | ".join(cells) + " |"


def summary(rows: list[Row]) -> str:
    """The figures over all traces."""
    spans = np.abs([row.figures.span_error for row in rows])
    with_device = [r.figures for r in rows if r.trace.nodes.attributes.present("stream").any()]
    medians = [f.kernel_start_error["median"] for f in with_device]
    p95s = [f.kernel_start_error["p95"] for f in with_device]
    return (
        f"{len(rows)} traces, {len(with_device)} of them with device work. Span error: median "
        f"{np.median(spans):.3%}, mean {np.mean(spans):.3%}, worst {np.max(spans):.3%}. Kernel "
        f"start error, as a share of the span: worst median {max(medians):.3%}, worst 95th "
        f"percentile {max(p95s):.3%}."
    )


def together(traces: dict[str, TraceSet]) -> Iterator[str]:
    """The table of runs whose ranks are replayed together."""
    yield "| run | ranks | matched | not matched | span error, worst | kernel p95, worst |"
    yield "|---|---|---|---|---|---|"
    for name, ranks in traces.items():
        done = replay(ranks)
        unmatched = "; ".join(f"{n}: {reason}" for reason, n in done.unmatched.items()) or "none"
        worst = max((f.span_error for f in done.figures.values()), key=abs)
        p95 = max(f.kernel_start_error["p95"] for f in done.figures.values())
        yield (f"| {name} | {len(ranks)} | {done.matched} | {unmatched} | {worst:+.3%} | "
               f"{p95:.3%} |")  # fmt: skip


def content(data: Path) -> str:
    """All that stands between the marks of the document."""
    rows, sets = [], {name: dict[int, Trace]() for name in SETS}
    for name, host, device in inputs(data):
        trace = convert(host, device).trace
        rows.append(measure(name, trace))
        for run in SETS:
            if name.startswith(run + " "):
                sets[run][trace.rank or len(sets[run])] = trace
    runs = {name: TraceSet(traces) for name, traces in sets.items() if traces}
    parts = [summary(rows), "", *table(rows), "", "## Ranks together", "", *together(runs)]
    return "\n".join(parts)


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser()
    default = os.environ.get("CHAKRA_ET_DATA") or ROOT.parent / "shared" / "data"
    parser.add_argument("--data", type=Path, default=Path(default))
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args()
    before, rest = TABLE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    made = f"{before}{BEGIN}\n{content(options.data)}\n{END}{after}"
    if options.check:
        same = made == TABLE.read_text()
        print("current" if same else "the table is out of date: run tools/fidelity.py")
        return 0 if same else 1
    TABLE.write_text(made)
    print(f"written {TABLE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
