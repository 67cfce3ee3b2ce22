"""Fill the tables of docs/benchmark.md: how well runs repeat recordings, on this machine.

    python tools/benchmark_table.py [--rounds 7] [--runs 3] [--tables TITLE ...] [--models NAME ...]

Each model is recorded, and its recording becomes a program. Then each of `--rounds` processes makes
both anew, and records and times them in pairs, `--runs` of them: who begins is drawn. Several
processes, as where memory comes to lie makes a difference that stays within one: two copies of a
model in one process differ by it as well. Where the system allows it, processes have a core that
nothing else runs on (`chrt`, `taskset`); ranks have one for each.

Run it on a machine that does nothing else (`.venv-torch/bin/python tools/benchmark_table.py`). Each
row is written once it is measured; rows that are not asked for stay as they are, so that it can be
done in parts. With `--print` the tables are printed, and the file is not changed.

Most tables are of processes with jemalloc, set up as PyTorch's guide to tuning has it (on Debian
`apt-get install libjemalloc2`).
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import argparse
import os
import pickle
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import benchmark_rounds as rounds_of
import torch
from benchmark_rows import (
    Cell,
    Samples,
    error,
    line,
    long_share,
    means,
    operators,
    operators_off,
    spread,
    times,
)
from recording import models

TARGET = Path(__file__).parents[1] / "docs" / "benchmark.md"
BEGIN, END = "<!-- table: tools/benchmark_table.py -->", "<!-- end of table -->"
JEMALLOC = "libjemalloc.so.2"
KEPT = {
    "LD_PRELOAD": JEMALLOC,
    "MALLOC_CONF": "oversize_threshold:1,dirty_decay_ms:-1,muzzy_decay_ms:-1",
}
"""Memory that is freed stays with the process."""
UNDISTURBED = ["chrt", "--rr", "10"]
"""Before all processes that are not of real time."""
ONE_CORE = ["taskset", "--cpu-list", str((os.cpu_count() or 1) - 1)]

Columns = dict[str, Cell]
RECORDED: Columns = {
    "operators": operators,
    "in those above 50 us": long_share,
    "processes x pairs": times("run"),
    "recorded (ms)": spread("recorded"),
    "run (ms)": spread("run"),
    "error": error("recorded", "run"),
    "operators off by more than 10 %": operators_off,
}
PLAIN: Columns = {
    "with recorded gaps (ms)": spread("with gaps"),
    "error of that": error("recorded", "with gaps"),
    "without profiler: model (ms)": spread("plain recorded"),
    "its run (ms)": spread("plain run"),
    "error of it": error("plain recorded", "plain run"),
}
FAULTS: Columns = {"page faults: recorded, run": means("faults recorded", "faults run")}
EMITTED: Columns = {
    "processes x pairs": times("run"),
    "`chakra run` (ms)": spread("run"),
    "emitted program (ms)": spread("emitted"),
    "difference": error("run", "emitted"),
}


@dataclass(frozen=True)
class Part:
    """One table: its models and columns, who measures them, and how their processes are started."""

    title: str
    programs: dict[str, rounds_of.Make]
    columns: Columns = field(default_factory=lambda: {**RECORDED, **FAULTS, **PLAIN})
    record: Callable[[rounds_of.Make, Path], None] = rounds_of.record_first
    measure: Callable[[rounds_of.Make, Path, int, int, Path], Samples] = rounds_of.measure
    environment: dict[str, str] = field(default_factory=lambda: KEPT)
    cores: list[str] = field(default_factory=lambda: ONE_CORE)

    @property
    def head(self) -> list[str]:
        """The heads of the columns."""
        return ["model", *self.columns]


PARTS = (
    Part("Large models", models.LARGE),
    Part("Large models, with the malloc of glibc", models.LARGE, environment={}),
    Part("Large models on two ranks", models.RANKS, {**RECORDED, **PLAIN},
         rounds_of.record_first_ranks, rounds_of.measure_ranks, cores=[]),
    Part("Tiny models", models.TINY),
    Part("Programs of large models", models.LARGE, EMITTED,
         rounds_of.record_and_emit, rounds_of.measure_emitted),
)  # fmt: skip


def row(part: Part, name: str, rounds: int, runs: int) -> str:
    """Measure a row, each round in a process of its own."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds + 1):
            own = Path(folder) / str(number)
            own.mkdir()
            _in_a_process(part, name, number, runs, Path(folder))
            if number:
                found.append(pickle.loads((own / "samples").read_bytes()))
    return line([name, *(cell(found) for cell in part.columns.values())])


def _in_a_process(part: Part, name: str, number: int, runs: int, folder: Path) -> None:
    command = [sys.executable, __file__, "--round", part.title, name, str(number), str(folder)]
    prefix = [*UNDISTURBED, *part.cores] if _undisturbed() else []
    done = subprocess.run(
        [*prefix, *command, "--runs", str(runs)], env={**os.environ, **part.environment}
    )
    if done.returncode:
        sys.exit(f"{name}, {part.title}: its process ended with code {done.returncode}")


def _undisturbed() -> bool:
    """Whether the system lets processes be of real time."""
    try:
        tried = subprocess.run([*UNDISTURBED, *ONE_CORE, "true"], capture_output=True)
    except FileNotFoundError:
        return False
    return tried.returncode == 0


def measure(title: str, name: str, number: str, folder: str, runs: int) -> None:
    """What one process does: the first one records, and each other one measures a round."""
    part = next(part for part in PARTS if part.title == title)
    if part.environment and JEMALLOC not in Path("/proc/self/maps").read_text():
        sys.exit(f"no {JEMALLOC} was loaded: install it (apt-get install libjemalloc2)")
    first, own = Path(folder) / "0" / "first", Path(folder) / number
    make = part.programs[name]
    if number == "0":
        part.record(make, first)
    else:
        samples = part.measure(make, first, runs, int(number), own)
        (own / "samples").write_bytes(pickle.dumps(samples))


def text(rows: dict[tuple[str, str], str], about: str) -> str:
    """All tables that have rows, and what they were measured with."""
    lines = []
    for part in PARTS:
        found = [rows[part.title, name] for name in part.programs if (part.title, name) in rows]
        if found:
            marks = ["---", *["---:"] * (len(part.head) - 1)]
            lines += [f"**{part.title}**", "", line(part.head), f"|{'|'.join(marks)}|"]
            lines += [*found, ""]
    return "\n".join([*lines, about])


def about() -> str:
    """How the tables were measured."""
    alone = (
        "real-time scheduling" if _undisturbed() else "scheduling like that of all other processes"
    )
    return (
        f"PyTorch {torch.__version__}, one thread for each process, {platform.machine()}; medians "
        f"of recordings of {rounds_of.STEPS} steps each (least to most in brackets), in turns, "
        f"with {alone}. Errors are those of the medians, with the interval that holds 95 % of "
        "those of samples drawn again. Of programs, each process runs "
        f"{rounds_of.ITERATIONS} iterations."
    )


def rows_of(document: str) -> dict[tuple[str, str], str]:
    """The rows that stand in the document."""
    found, title = {}, ""
    for each in document.partition(BEGIN)[2].partition(END)[0].splitlines():
        if each.startswith("**"):
            title = each.strip("*")
        elif each.startswith("| ") and not each.startswith("| model |"):
            found[title, each.split(" | ")[0].removeprefix("| ")] = each
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7, help="processes (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=3, help="pairs in each (default: %(default)s)")
    parser.add_argument("--tables", nargs="*", help="full titles; default: all")
    parser.add_argument("--models", nargs="*", help="names; default: all")
    parser.add_argument("--print", action="store_true", help="print, and change no file")
    parser.add_argument("--round", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.round:
        title, name, number, folder = given.round
        measure(title, name, number, folder, given.runs)
        return 0
    told = about()
    rows = {} if given.print else rows_of(TARGET.read_text())
    for part in PARTS:
        for name in part.programs:
            if part.title in (given.tables or [part.title]) and name in (given.models or [name]):
                rows[part.title, name] = row(part, name, given.rounds, given.runs)
                print(rows[part.title, name], file=sys.stderr)
                if not given.print:
                    _write(text(rows, told))
    if given.print:
        print(text(rows, told))
    return 0


def _write(tables: str) -> None:
    before, _, rest = TARGET.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    TARGET.write_text(f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
