"""Programs of all ranks over gloo, in an interpreter of its own: `python gloo_programs.py FOLDER`.

The folder has, for each program, `NAME.parts` (pickled) and `NAME.RANK.et`; what came of each rank
is left as `NAME.RANK.done`.
"""

# mypy: disable-error-code="import-not-found,no-untyped-call,attr-defined"

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from chakra_et.benchmark.comms.all_ranks import parts_of
from chakra_et.benchmark.comms.job import Job
from chakra_et.benchmark.running import Settings
from chakra_et.files import read, write
from chakra_et.model import TraceSet

EMITTED = "sharded"
"""The program that is written as well, and runs from its file."""
SETTINGS = Settings(warmup=0, iterations=2, threads=1)


def leave(folder: Path, name: str, traces: TraceSet, job: Job) -> None:
    """Leave a job for the interpreter that runs it."""
    parts = parts_of(job, timeout_s=30)
    (folder / f"{name}.parts").write_bytes(pickle.dumps(parts))
    for rank, part in enumerate(parts):
        write(traces[part.rank], folder / f"{name}.{rank}.et")


def _program(folder: Path, name: str, rank: int) -> None:
    from chakra_et.benchmark.comms.rank import operate

    part = pickle.loads((folder / f"{name}.parts").read_bytes())[rank]
    done = operate(read(folder / f"{name}.{rank}.et"), part, SETTINGS)
    (folder / f"{name}.{rank}.done").write_bytes(pickle.dumps(done))
    if name == EMITTED:
        path = folder / f"{name}.{rank}.py"
        operate(read(folder / f"{name}.{rank}.et"), part, SETTINGS, path)
        (folder / f"{name}.{rank}.span").write_text(str(_span_ns(path)))


def _span_ns(program: Path) -> int:
    """What an iteration of a written program takes."""
    names: dict[str, Any] = {"__name__": "benchmark"}
    exec(compile(program.read_text(), program.name, "exec"), names)
    names["set_up"]("cpu", 0, 1)
    span: int = names["iterate"](names["PARTS"], names["start"]())
    return span


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
    from recording.ranks import run_ranks

    folder = Path(sys.argv[1])
    by_ranks: dict[int, list[str]] = {}
    for path in sorted(folder.glob("*.parts")):
        by_ranks.setdefault(_count(folder.glob(f"{path.stem}.*.et")), []).append(path.stem)
    for count, names in sorted(by_ranks.items()):
        run_ranks([partial(_program, folder, name) for name in names], count)


def _count(paths: Iterable[Path]) -> int:
    return sum(1 for _ in paths)


if __name__ == "__main__":
    main()
