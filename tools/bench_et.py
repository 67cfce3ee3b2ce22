"""Time what reads an ET: how long commands take to start, and to look at half a gigabyte.

    python tools/bench_et.py                     generates the ET first, which takes a minute
    python tools/bench_et.py --et FILE --docs    with this ET, and put the figures into the docs

Each program is a process, with the compiled kernel if that is built, and in pure Python; start-up
is part of the time. The short ones run once beforehand, so that Python has its modules compiled, as
after an installation. Times are medians over the rounds. The last rows are the engine of a replay
and its whole, by tools/bench_replay.py, in processor time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench_convert import PAGE, TOOLS, Command, Measure, Pair, machine, put_into

from chakra_et.kernel import FORCE_PYTHON, kernel

CHAKRA: Final[Command] = [sys.executable, "-m", "chakra_et.cli"]
EXAMPLE: Final = TOOLS.parent / "examples" / "simple_add"
MODEL: Final = ["--model", "llama3-8b", "--tensors"]
BYTES_OF_STEP: Final = 339_500
"""What a micro-batch of that model adds to the ET of a rank."""
_LOADS: Final = "import sys; from chakra_et.feeder import Feeder; Feeder(sys.argv[1])"


def generated(megabytes: int, work: Path) -> Path:
    """An ET of about so many megabytes."""
    steps = str(max(1, megabytes * 1_000_000 // BYTES_OF_STEP))
    command: Command = [*CHAKRA, "generate", "llm", *MODEL, "--gbs", steps, "-o", work / "set"]
    subprocess.run(command, check=True, capture_output=True)
    return work / "set" / "trace.0.et"


def programs(et: Path, work: Path) -> dict[str, Command]:
    """What is measured."""
    small = work / "small.0.et"
    convert: Command = [*CHAKRA, "convert", EXAMPLE, "-o", small, "-q"]
    subprocess.run(convert, check=True, capture_output=True)
    size = f"{et.stat().st_size / 1e6:.0f} MB"
    return {
        "`chakra --help`": [*CHAKRA, "--help"],
        f"`chakra info` of {small.stat().st_size / 1e3:.0f} kB": [*CHAKRA, "info", small],
        f"`chakra info` of {size}": [*CHAKRA, "info", et],
        f"`chakra validate` of {size}": [*CHAKRA, "validate", et],
        f"the feeder loads {size}": [sys.executable, "-c", _LOADS, et],
    }


def row(what: str, code: str, runs: list[Measure]) -> str:
    """A line of the table."""
    wall, cpu, peak = (
        statistics.median(getattr(run, figure) for run in runs)
        for figure in ("wall_s", "cpu_s", "peak_bytes")
    )
    return f"| {what} | {code} | {wall:.2f} | {cpu:.2f} | {peak / 1e6:.0f} |"


def replay_row(code: str, pure: str, work: Path) -> list[str]:
    """Lines about a replay of a million nodes."""
    log, taken = work / "replay.log", Pair(work, work, work)
    command: Command = [sys.executable, TOOLS / "bench_replay.py"]
    run = taken.run("replay", command, **{FORCE_PYTHON: pure})
    told = json.loads(log.read_text())
    return [
        f"| {what} of {told['nodes']:,} nodes, {told[f'{key}_nodes_per_s']:,} nodes/s | {code} "
        f"| | {told[f'{key}_cpu_s']:.2f} | {run.peak_bytes / 1e6:.0f} |"
        for what, key in (("replay, the engine", "engine"), ("replay, all of it", "replay"))
    ]


def bench(et: Path, work: Path, rounds: int) -> str:
    """All figures, in Markdown."""
    where = machine()
    lines = [
        f"{where['processor']}, {where['cores']} cores, Python {where['python']}, "
        f"{where['chakra']}. Load of the machine before: {where['load_before']}.",
        "",
        "| what | code | wall s | processor s | peak MB |",
        "|---|---|---|---|---|",
    ]
    codes = {"python": "1"} if kernel() is None else {"kernel": "", "python": "1"}
    desk = Pair(et, et, work)
    for what, command in programs(et, work).items():
        for code, pure in codes.items():
            times = 1 if code == "python" and et in command else rounds
            print(f"{what}, {code}", file=sys.stderr, flush=True)
            if et not in command:
                desk.run("first", command, **{FORCE_PYTHON: pure})
            runs = [desk.run("run", command, **{FORCE_PYTHON: pure}) for _ in range(times)]
            lines.append(row(what, code, runs))
    for code, pure in codes.items():
        lines += replay_row(code, pure, work)
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--et", type=Path, metavar="FILE", help="measure with this ET")
    parser.add_argument("--megabytes", type=int, default=500, help="of the ET that is made (500)")
    parser.add_argument("--rounds", type=int, default=3, help="with the kernel; 1 without it")
    parser.add_argument("--docs", action="store_true", help=f"put the table into {PAGE.name}")
    options = parser.parse_args()
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory("-bench")))
        et = options.et.resolve() if options.et else generated(options.megabytes, work)
        text = bench(et, work, options.rounds)
    print(text)
    if options.docs:
        put_into(PAGE, text, "ET")
    return 0


if __name__ == "__main__":
    sys.exit(main())
