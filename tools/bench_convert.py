"""Time `chakra convert` against the floor and against mlc-chakra, in one run.

    python tools/bench_convert.py --sizes 10000,100000 --json bench.json

For each size a pair of traces is made (tools/make_pair.py) and handed to

* ours       `chakra convert`, as a process of its own;
* floor      bare typed decoding of both files (tools/decode_floor.py): what no converter in
             Python that looks at its input can beat by much;
* mlc-chakra its two steps, `chakra_trace_link` and `chakra_converter`, in an environment that is
             made for them (tools/mlc_env.py). Leave it out with --no-mlc.

Each is a process, so start-up is part of the time. Of several runs the fastest counts.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

import mlc_env
from rich.console import Console
from rich.table import Table

TOOLS = Path(__file__).resolve().parent
OURS, FLOOR, MLC = "ours", "floor", "mlc-chakra"
Command = list[str | Path]
console = Console(width=None if sys.stdout.isatty() else 120)


class BenchError(Exception):
    pass


@dataclass(frozen=True)
class Measure:
    """What one program took."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    output_bytes: int = 0


@dataclass
class Case:
    """One size, and what was measured on it."""

    host_ops: int
    input_bytes: int
    pair: dict[str, object]
    runs: dict[str, Measure] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)


def run(log: Path, arguments: Command) -> Measure:
    helper: Command = [sys.executable, "-S", "-E", TOOLS / "measure.py", log, *arguments]
    done = subprocess.run(helper, check=True, capture_output=True, text=True, cwd=log.parent)
    taken = json.loads(done.stdout)
    if taken.pop("status"):
        tail = log.read_text(errors="replace").strip().splitlines()[-3:]
        raise BenchError(" ".join(tail) or "failed without a word")
    return Measure(**taken)


def best(measures: Sequence[Measure]) -> Measure:
    return min(measures, key=lambda x: x.wall_s)


def with_output(measure: Measure, output: Path) -> Measure:
    return Measure(measure.wall_s, measure.cpu_s, measure.peak_bytes, output.stat().st_size)


def ours(host: Path, device: Path, work: Path, repeat: int) -> dict[str, Measure]:
    output = work / "ours.et"
    command: Command = [sys.executable, "-m", "chakra_et.cli", "convert"]
    command += ["--host", host, "--device", device, "-o", output]
    measured = best([run(work / "ours.log", command) for _ in range(repeat)])
    return {OURS: with_output(measured, output)}


def floor(host: Path, device: Path, work: Path, repeat: int) -> dict[str, Measure]:
    command: Command = [sys.executable, TOOLS / "decode_floor.py", host, device]
    return {FLOOR: best([run(work / "floor.log", command) for _ in range(repeat)])}


def mlc(host: Path, device: Path, work: Path, repeat: int) -> dict[str, Measure]:
    """Its own times vary little and are long: one run."""
    del repeat
    linked, output = work / "mlc-linked.json", work / "mlc.et"
    link: Command = [mlc_env.command("chakra_trace_link"), "--rank", "0"]
    link += ["--chakra-host-trace", host, "--chakra-device-trace", device]
    first = with_output(run(work / "mlc-link.log", [*link, "--output-file", linked]), linked)
    convert: Command = [mlc_env.command("chakra_converter"), "PyTorch", "--input", linked]
    second = with_output(run(work / "mlc-convert.log", [*convert, "--output", output]), output)
    linked.unlink()
    both = Measure(
        first.wall_s + second.wall_s,
        first.cpu_s + second.cpu_s,
        max(first.peak_bytes, second.peak_bytes),
        second.output_bytes,
    )
    return {f"{MLC}: link": first, f"{MLC}: convert": second, MLC: both}


def make_pair(host_ops: int, seed: int, work: Path, gzip: bool) -> tuple[Path, Path, Case]:
    """In a process of its own, so that this one stays small."""
    script = (
        "import dataclasses, json, pathlib, sys; import pairs;"
        "facts = pairs.make_pair(int(sys.argv[1]), int(sys.argv[2]), "
        "pathlib.Path(sys.argv[3]), sys.argv[4] == 'True');"
        "print(json.dumps(dataclasses.asdict(facts), default=str))"
    )
    arguments: Command = [sys.executable, "-c", script, str(host_ops), str(seed), work, str(gzip)]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True, cwd=TOOLS)
    facts = json.loads(done.stdout)
    size = facts["host_bytes"] + facts["device_bytes"]
    host, device = Path(facts.pop("host")), Path(facts.pop("device"))
    return host, device, Case(facts["ops"], size, facts)


def bench(host_ops: int, work: Path, options: argparse.Namespace) -> Case:
    host, device, case = make_pair(host_ops, options.seed, work, options.gzip)
    programs = {OURS: ours, FLOOR: floor}
    if not options.no_mlc and host_ops <= options.mlc_max_ops and not options.gzip:
        programs[MLC] = mlc
    for name, program in programs.items():
        console.print(f"[dim]{case.host_ops:,} ops: {name} …")
        try:
            case.runs.update(program(host, device, work, options.repeat))
        except BenchError as error:
            case.failures[name] = str(error)
    return case


# ------------------------------------------------------------------------------------------------
# What it comes to


def ratio(case: Case, above: str, below: str) -> float | None:
    if above in case.runs and below in case.runs:
        return case.runs[above].wall_s / case.runs[below].wall_s
    return None


def growth(case: Case, first: Case, name: str) -> float | None:
    """Time per op, as a multiple of that at the first size: 1 is linear."""
    if name not in case.runs or name not in first.runs:
        return None
    now = case.runs[name].wall_s / case.host_ops
    return now / (first.runs[name].wall_s / first.host_ops)


def summary(case: Case, first: Case) -> dict[str, float | None]:
    return {
        "ours_over_floor": ratio(case, OURS, FLOOR),
        "mlc_over_ours": ratio(case, MLC, OURS),
        "mlc_over_floor": ratio(case, MLC, FLOOR),
        **{f"growth_{name}": growth(case, first, name) for name in (OURS, FLOOR, MLC)},
    }


def show(cases: Sequence[Case]) -> None:
    table = Table(title="Time and memory", title_justify="left")
    for column in ("host ops", "in MB", "program"):
        table.add_column(column, justify="left" if column == "program" else "right")
    for column in ("wall s", "CPU s", "µs/op", "peak MB", "peak/in", "out MB"):
        table.add_column(column, justify="right")
    for case in cases:
        lead = [f"{case.host_ops:,}", f"{case.input_bytes / 1e6:.1f}"]
        for name, x in case.runs.items():
            table.add_row(
                *lead,
                name,
                f"{x.wall_s:.2f}",
                f"{x.cpu_s:.2f}",
                f"{1e6 * x.wall_s / case.host_ops:.1f}",
                f"{x.peak_bytes / 1e6:.0f}",
                f"{x.peak_bytes / case.input_bytes:.2f}",
                f"{x.output_bytes / 1e6:.1f}" if x.output_bytes else "",
            )
            lead = ["", ""]
        for name, reason in case.failures.items():
            table.add_row(*lead, name, "failed")
            console.print(f"{case.host_ops:,} ops: {name} failed: {reason}", markup=False)
        table.add_section()
    console.print(table)

    table = Table(title="Ratios of wall time; growth of time per op (1 is linear)")
    table.title_justify = "left"
    for key in ("host ops", *summary(cases[0], cases[0])):
        table.add_column(key.replace("_", " "), justify="right")
    for case in cases:
        values = summary(case, cases[0]).values()
        shown = ["" if value is None else f"{value:.2f}" for value in values]
        table.add_row(f"{case.host_ops:,}", *shown)
    console.print(table)


def report(cases: Sequence[Case], options: argparse.Namespace) -> dict[str, object]:
    return {
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "cpus": os.cpu_count(),
            "python": platform.python_version(),
        },
        "seed": options.seed,
        "gzip": options.gzip,
        "repeat": options.repeat,
        "sizes": [{**asdict(case), "ratios": summary(case, cases[0])} for case in cases],
    }


def sizes(text: str) -> list[int]:
    found = [int(part.replace("_", "")) for part in text.split(",")]
    if min(found) < 1:
        raise ValueError
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=sizes, default=[10_000, 100_000], metavar="N,N,…")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeat", type=int, default=3, help="runs of ours and of the floor (3)")
    parser.add_argument("--gzip", action="store_true", help="compressed input (not mlc-chakra)")
    parser.add_argument("--no-mlc", action="store_true", help="leave mlc-chakra out")
    parser.add_argument(
        "--mlc-max-ops", type=int, default=100_000, metavar="N", help="its largest size (100000)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work in DIR and leave it there")
    options = parser.parse_args()

    if not options.no_mlc and min(options.sizes) <= options.mlc_max_ops:
        console.print("[dim]mlc-chakra's environment …")
        mlc_env.mlc_python()
    cases: list[Case] = []
    with ExitStack() as stack:
        base = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory("-bench")))
        for host_ops in options.sizes:
            work = base.resolve() / str(host_ops)
            work.mkdir(parents=True, exist_ok=True)
            cases.append(bench(host_ops, work, options))
            if not options.keep:
                for file in work.iterdir():
                    file.unlink()
    show(cases)
    if options.json:
        options.json.write_text(json.dumps(report(cases, options), indent=2) + "\n")
    return int(any(case.failures for case in cases))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except mlc_env.MlcError as error:
        sys.exit(f"mlc-chakra: {error}")
