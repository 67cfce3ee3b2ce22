"""Fill the tables of docs/benchmark.md: how well runs repeat recordings, on this machine.

    python tools/benchmark_table.py [--runs 7] [--tables WORD ...] [--models NAME ...] [--print]

Each model is recorded; its recording becomes a program; then model and program are recorded in
turns, `--runs` times each, two steps at a time, and timed in turns without the profiler. Each has
a process of its own. Run it on a machine that does nothing else
(`.venv-torch/bin/python tools/benchmark_table.py`). Rows of the file that are not asked for stay
as they are. With `--print` the tables are printed, and the file is not changed.

Most tables are of processes with jemalloc, set up as PyTorch's guide to tuning has it (on Debian
`apt-get install libjemalloc2`).
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from benchmark_rows import HEAD, RANKS_HEAD, STEPS, Recordings, line, measure, measure_ranks
from recording import models
from recording.window import Step

TARGET = Path(__file__).parents[1] / "docs" / "benchmark.md"
BEGIN, END = "<!-- table: tools/benchmark_table.py -->", "<!-- end of table -->"
JEMALLOC = "libjemalloc.so.2"
KEPT = {
    "LD_PRELOAD": JEMALLOC,
    "MALLOC_CONF": "oversize_threshold:1,dirty_decay_ms:-1,muzzy_decay_ms:-1",
}
"""Memory that is freed stays with the process."""


@dataclass(frozen=True)
class Part:
    """One table: its models, who measures them, and the environment of their processes."""

    title: str
    programs: dict[str, Callable[[], Step]]
    measure: Callable[[str, Callable[[], Step], int, Path], Recordings] = measure
    head: list[str] = field(default_factory=lambda: HEAD)
    environment: dict[str, str] = field(default_factory=lambda: KEPT)


PARTS = (
    Part("Large models", models.LARGE),
    Part("Large models, with the malloc of glibc", models.LARGE, environment={}),
    Part("Large models on two ranks", models.RANKS, measure_ranks, RANKS_HEAD),
    Part("Tiny models", models.TINY),
)


def measured(part: Part, name: str, runs: int) -> str:
    """A row, from a process of its own."""
    command = [sys.executable, __file__, "--row", part.title, name, "--runs", str(runs)]
    done = subprocess.run(
        command, env={**os.environ, **part.environment}, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        sys.exit(f"{name}, {part.title}: its process ended with code {done.returncode}")
    return done.stdout.splitlines()[-1]


def row(title: str, name: str, runs: int) -> str:
    """Measure a row in this process."""
    part = next(part for part in PARTS if part.title == title)
    if part.environment and JEMALLOC not in Path("/proc/self/maps").read_text():
        sys.exit(f"no {JEMALLOC} was loaded: install it (apt-get install libjemalloc2)")
    with tempfile.TemporaryDirectory() as folder:
        return line(part.measure(name, part.programs[name], runs, Path(folder)).cells())


def text(rows: dict[tuple[str, str], str], runs: int) -> str:
    """All tables that have rows, and what they were measured with."""
    lines = []
    for part in PARTS:
        found = [rows[part.title, name] for name in part.programs if (part.title, name) in rows]
        if found:
            marks = ["---", *["---:"] * (len(part.head) - 1)]
            lines += [f"**{part.title}**", "", line(part.head), f"|{'|'.join(marks)}|"]
            lines += [*found, ""]
    lines.append(
        f"PyTorch {torch.__version__}, one thread for each process, {platform.machine()}; medians "
        f"of {runs} recordings of {STEPS} steps each, in turns (least to most in brackets)."
    )
    return "\n".join(lines)


def rows_of(document: str) -> dict[tuple[str, str], str]:
    """The rows that stand in the document."""
    found, title = {}, ""
    for each in document.partition(BEGIN)[2].partition(END)[0].splitlines():
        if each.startswith("**"):
            title = each.strip("*")
        elif each.startswith("| ") and not each.startswith(f"| {HEAD[0]} |"):
            found[title, each.split(" | ")[0].removeprefix("| ")] = each
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--tables", nargs="*", help="full titles; default: all")
    parser.add_argument("--models", nargs="*", help="names; default: all")
    parser.add_argument("--print", action="store_true", help="print, and change no file")
    parser.add_argument("--row", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row:
        title, name = given.row
        print(row(title, name, given.runs))
        return 0
    rows = {} if given.print else rows_of(TARGET.read_text())
    for part in PARTS:
        for name in part.programs:
            if part.title in (given.tables or [part.title]) and name in (given.models or [name]):
                rows[part.title, name] = measured(part, name, given.runs)
                print(rows[part.title, name], file=sys.stderr)
                if not given.print:
                    _write(text(rows, given.runs))
    if given.print:
        print(text(rows, given.runs))
    return 0


def _write(tables: str) -> None:
    before, _, rest = TARGET.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    TARGET.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
