"""Recording: a window of a program as a pair of files, and what the program says it did there."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call"

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from chakra_et import collect
from recording.truth import Communication, Times, write_averages, write_truth

# The profiler gets ready, and DDP, which sorts its gradient buckets anew after the first backward
# pass, settles.
WARMUP = 1
UNSEEN_STEPS = WARMUP + 1

Step = Callable[[], "list[Communication] | None"]
"""One step of a program; a list of what it communicates, where it knows."""


@dataclass(frozen=True)
class Pair:
    """The two files of one process."""

    host: Path
    device: Path


def pair_of(directory: Path, rank: int) -> Pair:
    """The files of a rank."""
    return Pair(directory / f"host.{rank}.json.gz", directory / f"device.{rank}.json.gz")


def record(
    step: Step, directory: Path, *, steps: int = 1, rank: int = 0, tells: bool = False
) -> None:
    """Record `steps` calls of `step`, after a few unseen ones, as the pair of `rank`.

    With `tells`, what the step says that it communicates is written beside the directory:
    `<directory>.truth.<rank>.json`, and PyTorch's own account of the times of operators,
    `<directory>.averages.<rank>.json`.
    """
    truth: list[Communication] = []
    torch.set_num_threads(1)
    with collect(directory, steps=steps, warmup=WARMUP, quiet=True) as recording:
        for left in reversed(range(UNSEEN_STEPS + steps)):
            told = step() or []
            truth += told if left < steps else []
            recording.step()
    _forget_the_machine(pair_of(directory, rank).device)
    if tells:
        write_truth(directory, rank, truth)
        table = recording.profiler.key_averages()
        write_averages(directory, rank, {item.key: _times(item) for item in table})


def _times(item: Any) -> Times:
    own_us = None if item.is_async else item.self_cpu_time_total
    return Times(item.count, own_us, item.cpu_time_total)


def _forget_the_machine(device: Path) -> None:
    """Kineto writes the host's name and the file's full path; neither belongs in a recording."""
    text = gzip.decompress(device.read_bytes()).decode()
    text = re.sub(r'("host_name": )"[^"]*"', r'\1"host"', text)
    text = re.sub(r'("traceName": )"[^"]*"', rf'\1"{device.stem}"', text)
    device.write_bytes(gzip.compress(text.encode(), mtime=0))
