"""Record small PyTorch runs on the CPU, each as pairs of files for `chakra convert`.

    python tools/record_pairs.py PROGRAM|all -o DIR [--truth]

A pair is the host execution trace (`host.<rank>.json.gz`) and the Kineto profile
(`device.<rank>.json.gz`) of the same window of the same process, as `chakra_et.collect` writes
them. The runs are seeded and use one thread, so that two recordings differ in times and ids only.
With `all`, each program has a folder in DIR. With `--truth`, programs say beside their folder what
they communicate, in `<folder>.truth.<rank>.json`, and PyTorch's profiler how long each operator
took, in `<folder>.averages.<rank>.json`.
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

try:
    import torch
except ImportError as error:
    sys.exit(f"{error}\nRecording needs PyTorch: pip install 'chakra-et[torch]'")

from recording import communication, single, training
from recording.ranks import run_ranks
from recording.window import Pair, Step, pair_of, record


@dataclass(frozen=True)
class Program:
    """What is recorded: how a step of it is made, and on how many ranks."""

    make: Callable[[], Step]
    ranks: int = 1
    steps: int = 1
    since: tuple[int, int] = (0, 0)
    """The first release of PyTorch that has what it needs."""


PROGRAMS = {
    "mlp": Program(single.mlp_step),
    "transformer": Program(single.transformer_step, steps=3),
    "compiled": Program(single.compiled_step),
    "loader": Program(single.loader_step),
    "threads": Program(single.threads_step),
    "ddp": Program(training.ddp_step, ranks=2, steps=3),
    "async": Program(training.async_step, ranks=2, steps=2),
    "sharded": Program(training.sharded_step, ranks=2, since=(2, 8)),
    "functional": Program(training.functional_step, ranks=4),
    "tensor_parallel": Program(training.tensor_parallel_step, ranks=2, since=(2, 8)),
    "two_stages": Program(training.pipeline_step, ranks=2),
    "pipeline": Program(training.pipeline_step, ranks=4),
    "collectives": Program(communication.collectives, ranks=4),
    "messages": Program(communication.messages, ranks=4),
}


def available() -> list[str]:
    """The programs that the PyTorch at hand can run."""
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return [name for name, program in PROGRAMS.items() if release >= program.since]


def record_all(folders: dict[str, Path], tells: bool = False) -> dict[str, list[Pair]]:
    """Record programs into their folders: the pairs of each, by rank.

    Those of several ranks come first: their processes are forked off before the profiler has
    worked in this one.
    """
    by_ranks: dict[int, list[str]] = {}
    for name in folders:
        by_ranks.setdefault(PROGRAMS[name].ranks, []).append(name)
    alone = by_ranks.pop(1, [])
    for count, names in by_ranks.items():
        run_ranks([partial(_record_rank, n, folders[n], tells) for n in names], count)
    for name in alone:
        _record_rank(name, folders[name], tells, 0)
    return {
        name: [pair_of(folder, rank) for rank in range(PROGRAMS[name].ranks)]
        for name, folder in folders.items()
    }


def _record_rank(name: str, folder: Path, tells: bool, rank: int) -> None:
    program = PROGRAMS[name]
    record(program.make(), folder, steps=program.steps, rank=rank, tells=tells)


def _account(pairs: list[Pair]) -> Iterator[str]:
    """One line per file: its name, its size and how much is in it."""
    for pair in pairs:
        for path, key, noun in (
            (pair.host, "nodes", "nodes"),
            (pair.device, "traceEvents", "events"),
        ):
            data = path.read_bytes()
            yield f"{path}  {len(data):,} bytes  {_count(data, key)} {noun}"


def _count(data: bytes, key: str) -> str:
    """How many entries a list of a recording has; some releases write broken JSON."""
    try:
        content = json.loads(gzip.decompress(data))
    except ValueError:
        return "an unknown number of"
    return f"{len(content[key]):,}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program", choices=[*PROGRAMS, "all"])
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--truth", action="store_true", help="write what is communicated, and times by operator"
    )
    given = parser.parse_args()
    folders = {given.program: given.output}
    if given.program == "all":
        folders = {name: given.output / name for name in available()}
    for pairs in record_all(folders, given.truth).values():
        for line in _account(pairs):
            print(line)


if __name__ == "__main__":
    main()
