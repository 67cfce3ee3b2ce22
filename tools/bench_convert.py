"""Time `chakra convert` beside the floor, mlc-chakra and HTA, in turns, in one run.

    python tools/bench_convert.py                         10,000 and 100,000 operations, 3 rounds
    python tools/bench_convert.py --docs                  and put the figures into the docs
    python tools/bench_convert.py --sizes 1000000 --no-peers --json million.json
    python tools/bench_convert.py --of small.json million.json --docs    runs in parts

For each size a pair of traces is made (tools/make_pair.py). In each round every program runs once,
one after the other, so that what disturbs the machine disturbs them all:

* kernel     `chakra convert` with the compiled kernel, if that is built;
* python     the same in pure Python;
* floor      bare typed decoding of both files (tools/decode_floor.py): what no converter in
             Python that looks at its input can beat by much;
* mlc-chakra its two steps, `chakra_trace_link` and `chakra_converter`, in an environment that is
             made for them (tools/mlc_env.py);
* HTA        its loading of the profile alone, from the same environment.

Each is a process, so start-up is part of the time. Programs write new files: one that takes the
place of another waits for the disk on some file systems (ext4). Times are medians over the rounds;
a ratio is that of each round, as median and from the least to the greatest. Memory is looked at in
one more round, since looking takes time from the program.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import mlc_env

from chakra_et.kernel import FORCE_PYTHON, kernel, state

TOOLS: Final = Path(__file__).resolve().parent
PAGE: Final = TOOLS.parent / "docs" / "performance.md"
KERNEL, PYTHON, FLOOR, MLC, HTA = "kernel", "python", "floor", "mlc-chakra", "HTA"
RATIOS: Final = (
    (MLC, KERNEL, "wall_s"), (MLC, PYTHON, "wall_s"), (HTA, KERNEL, "wall_s"),
    (KERNEL, FLOOR, "cpu_s"), (PYTHON, FLOOR, "cpu_s"), (MLC, KERNEL, "cpu_s"),
)  # fmt: skip
"""What stands above, what below, and of which figure."""
_HTA_LOADS: Final = (
    "import sys; from hta.trace_analysis import TraceAnalysis; "
    "TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=sys.argv[2])"
)
Command: TypeAlias = list[str | Path]


class BenchError(Exception):
    pass


@dataclass(frozen=True)
class Measure:
    """What one program took."""

    wall_s: float
    cpu_s: float
    peak_bytes: int

    def then(self, other: Measure) -> Measure:
        """Both, one after the other."""
        peak = max(self.peak_bytes, other.peak_bytes)
        return Measure(self.wall_s + other.wall_s, self.cpu_s + other.cpu_s, peak)


@dataclass
class Case:
    """One size: what was measured of each program, round by round."""

    host_ops: int
    input_bytes: int
    runs: dict[str, list[Measure]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    peak_bytes: dict[str, int] = field(default_factory=dict)
    """Of all processes of a program together."""

    def median(self, program: str, figure: str) -> float:
        """The median of a figure over the rounds."""
        values: list[float] = [getattr(run, figure) for run in self.runs[program]]
        return statistics.median(values)

    def ratio(self, above: str, below: str, figure: str) -> list[float]:
        """A ratio in each round, from the least on."""
        pairs = zip(self.runs.get(above, []), self.runs.get(below, []), strict=False)
        return sorted(getattr(a, figure) / getattr(b, figure) for a, b in pairs)


@dataclass(frozen=True)
class Pair:
    """The two files, and where programs write."""

    host: Path
    device: Path
    work: Path
    together: bool = False
    """Look at the memory of all processes together, which holds them up."""

    def new(self, name: str) -> Path:
        """A file to be written, which is not there."""
        path = self.work / name
        path.unlink(missing_ok=True)
        return path

    def run(self, name: str, command: Command, **environment: str) -> Measure:
        """Measure a program. Raises BenchError, with the end of what it said, where it fails."""
        log = self.work / f"{name}.log"
        how = ["--together"] if self.together else []
        helper: Command = [sys.executable, "-S", "-E", TOOLS / "measure.py", *how, log, *command]
        done = subprocess.run(
            helper, check=True, capture_output=True, text=True, cwd=self.work,
            env={**os.environ, **environment},
        )  # fmt: skip
        taken = json.loads(done.stdout)
        if taken.pop("status"):
            tail = log.read_text(errors="replace").strip().splitlines()[-3:]
            raise BenchError(" ".join(tail) or "failed without a word")
        return Measure(**taken)


def ours(pure: str) -> Callable[[Pair], Measure]:
    """Our command, in pure Python or with the kernel."""

    def run(pair: Pair) -> Measure:
        command: Command = [sys.executable, "-m", "chakra_et.cli", "convert", "-q"]
        command += ["--host", pair.host, "--device", pair.device, "-o", pair.new("ours.et")]
        return pair.run("ours", command, **{FORCE_PYTHON: pure})

    return run


def floor(pair: Pair) -> Measure:
    return pair.run("floor", [sys.executable, TOOLS / "decode_floor.py", pair.host, pair.device])


def mlc(pair: Pair) -> Measure:
    linked, output = pair.new("mlc-linked.json"), pair.new("mlc.et")
    link: Command = [mlc_env.command("chakra_trace_link"), "--rank", "0", "--output-file", linked]
    link += ["--chakra-host-trace", pair.host, "--chakra-device-trace", pair.device]
    convert: Command = [mlc_env.command("chakra_converter"), "PyTorch", "--input", linked]
    first = pair.run("mlc-link", link)
    return first.then(pair.run("mlc-convert", [*convert, "--output", output]))


def hta(pair: Pair) -> Measure:
    command: Command = [mlc_env.command("python"), "-c", _HTA_LOADS, pair.device, pair.work]
    return pair.run("hta", command)


def programs(options: argparse.Namespace) -> dict[str, Callable[[Pair], Measure]]:
    """What takes part."""
    found = {} if kernel() is None else {KERNEL: ours("")}
    found |= {PYTHON: ours("1"), FLOOR: floor}
    return found if options.no_peers else {**found, MLC: mlc, HTA: hta}


def make_pair(host_ops: int, work: Path) -> tuple[Pair, Case]:
    """In a process of its own, so that this one stays small; one that is kept is taken."""
    pair = Pair(work / "host.json", work / "device.json", work)
    if not pair.device.is_file():
        command: Command = [sys.executable, TOOLS / "make_pair.py", "--host-ops", str(host_ops)]
        subprocess.run([*command, "-o", work], check=True, capture_output=True)
    return pair, Case(host_ops, sum(path.stat().st_size for path in (pair.host, pair.device)))


def bench(host_ops: int, work: Path, options: argparse.Namespace) -> Case:
    """All rounds of one size."""
    pair, case = make_pair(host_ops, work)
    for turn in range(options.rounds):
        for name, program in programs(options).items():
            if name in case.failures or (name == MLC and turn >= options.mlc_rounds):
                continue
            print(f"{host_ops:,} operations, round {turn + 1}: {name}", file=sys.stderr, flush=True)
            try:
                case.runs.setdefault(name, []).append(program(pair))
            except BenchError as error:
                case.failures[name] = str(error)
                case.runs.pop(name, None)
    for name in case.runs:
        print(f"{host_ops:,} operations, memory: {name}", file=sys.stderr, flush=True)
        case.peak_bytes[name] = programs(options)[name](replace(pair, together=True)).peak_bytes
    return case


# ------------------------------------------------------------------------------------------------
# What it comes to


def machine() -> dict[str, Any]:
    """Where and with what this was measured."""
    name = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.is_file():
        lines = cpus.read_text().splitlines()
        name = next((line.split(": ")[1] for line in lines if line.startswith("model name")), name)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "chakra": state(),
        "load_before": round(load, 1),
    }


def tables(cases: list[Case], where: Mapping[str, Any]) -> str:
    """All figures, in Markdown."""
    lines = [
        f"{where['processor']}, {where['cores']} cores, Python {where['python']}, "
        f"{where['chakra']}. Load of the machine before: {where['load_before']}.",
        "",
        "| operations | input MB | program | wall s | processor s | processor µs / operation "
        "| peak MB | peak / input |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in cases:
        for name in case.runs:
            peak, cpu_s = case.peak_bytes[name], case.median(name, "cpu_s")
            lines.append(
                f"| {case.host_ops:,} | {case.input_bytes / 1e6:.0f} | {name} "
                f"| {case.median(name, 'wall_s'):.2f} | {cpu_s:.2f} "
                f"| {1e6 * cpu_s / case.host_ops:.1f} "
                f"| {peak / 1e6:.0f} | {peak / case.input_bytes:.2f} |"
            )
        lines += [
            f"| {case.host_ops:,} | | {name} | failed: {reason} | | | | |"
            for name, reason in case.failures.items()
        ]
    lines += [
        "",
        "| operations | ratio | of | median | least to greatest |",
        "|---|---|---|---|---|",
    ]
    for case in cases:
        for above, below, figure in RATIOS:
            if found := case.ratio(above, below, figure):
                what = "wall time" if figure == "wall_s" else "processor time"
                lines.append(
                    f"| {case.host_ops:,} | {above} / {below} | {what} "
                    f"| {statistics.median(found):.2f} | {found[0]:.2f} to {found[-1]:.2f} |"
                )
    return "\n".join(lines)


def put_into(page: Path, text: str, name: str = "figures") -> None:
    """Put figures between the marks of that name in a page."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, found, rest = page.read_text().partition(begin)
    if not found:
        raise BenchError(f"{page} has no place for {name}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.partition(end)[2]}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    sizes = [10_000, 100_000]
    parser.add_argument("--sizes", type=lambda text: list(map(int, text.split(","))), default=sizes)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mlc-rounds", type=int, default=3, help="rounds of mlc-chakra (3)")
    parser.add_argument("--no-peers", action="store_true", help="leave mlc-chakra and HTA out")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to FILE")
    parser.add_argument("--docs", action="store_true", help=f"put the tables into {PAGE.name}")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="work in DIR, leave it there, and take its pairs"
    )
    parser.add_argument("--of", type=Path, nargs="+", metavar="FILE", help="only show such FILEs")
    options = parser.parse_args()
    where, cases = seen(options.of) if options.of else measured(options)
    text = tables(cases, where)
    print(text)
    if options.json:
        figures = {"machine": where, "sizes": [asdict(case) for case in cases]}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if options.docs:
        put_into(PAGE, text)
    return int(any(case.failures for case in cases))


def seen(files: list[Path]) -> tuple[dict[str, Any], list[Case]]:
    """The machine and the sizes of earlier runs."""
    runs = [json.loads(file.read_text()) for file in files]
    cases = [
        Case(**{**case, "runs": {name: [Measure(**run) for run in runs] for name, runs in
                                 case["runs"].items()}})
        for run in runs
        for case in run["sizes"]
    ]  # fmt: skip
    load = max(run["machine"]["load_before"] for run in runs)
    return {**runs[0]["machine"], "load_before": load}, cases


def measured(options: argparse.Namespace) -> tuple[dict[str, Any], list[Case]]:
    """The machine and all sizes, measured now."""
    if not options.no_peers:
        mlc_env.mlc_python()
    where, cases = machine(), []
    with ExitStack() as stack:
        base = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory("-bench")))
        for host_ops in options.sizes:
            work = base.resolve() / str(host_ops)
            work.mkdir(parents=True, exist_ok=True)
            cases.append(bench(host_ops, work, options))
    return where, cases


if __name__ == "__main__":
    try:
        sys.exit(main())
    except mlc_env.MlcError as error:
        sys.exit(f"mlc-chakra: {error}")
