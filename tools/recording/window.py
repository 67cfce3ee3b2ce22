"""Recording: a window of a program as a pair of files, and what the program says it did there."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call"

from __future__ import annotations

import gzip
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule

from recording.truth import Communication, write_truth

# The profiler warms up, and DDP, which sorts its gradient buckets anew after the first backward
# pass, settles.
UNSEEN_STEPS = 2

# Gloo's threads close the range of a collective a moment after the result is there. A range that
# is still open at the end of the window is missing in the host trace.
PAUSE_S = 0.05


Step = Callable[[], "list[Communication] | None"]
"""One step of a program; a list of what it communicates, where it knows."""


@dataclass(frozen=True)
class Pair:
    """The two files of one process."""

    host: Path
    device: Path


def record(
    step: Step,
    directory: Path,
    *,
    steps: int = 1,
    rank: int = 0,
    compress: bool = False,
    pause_s: float = 0.0,
    all_threads: bool = False,
    tells: bool = False,
) -> Pair:
    """Record `steps` calls of `step`, after a few unseen ones, as the pair of `rank`.

    The window closes `pause_s` after the last call. With `all_threads`, the profiler follows all
    threads. With `tells`, what the step says that it communicates is written beside the directory:
    `<directory>.truth.<rank>.json`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    pair = Pair(directory / f"host.{rank}.json", directory / f"device.{rank}.json")
    truth: list[Communication] = []
    torch.set_num_threads(1)
    observer = ExecutionTraceObserver()
    observer.register_callback(str(pair.host))
    try:
        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=1, warmup=UNSEEN_STEPS - 1, active=steps, repeat=1),
            on_trace_ready=lambda profiler: profiler.export_chrome_trace(str(pair.device)),
            record_shapes=True,
            execution_trace_observer=observer,
            **_every_thread(all_threads),
        ) as profiler:
            for left in reversed(range(UNSEEN_STEPS + steps)):
                told = step() or []
                truth += told if left < steps else []
                if not left:
                    time.sleep(pause_s)
                profiler.step()
    finally:
        observer.unregister_callback()
    _forget_the_machine(pair.device)
    if tells:
        write_truth(directory, rank, truth)
    return Pair(_gzip(pair.host), _gzip(pair.device)) if compress else pair


def _every_thread(wanted: bool) -> dict[str, Any]:
    """Let the profiler follow all threads, not only the one that started it."""
    if not wanted:
        return {}
    from torch._C._profiler import _ExperimentalConfig

    return {"experimental_config": _ExperimentalConfig(profile_all_threads=True)}


def _forget_the_machine(device: Path) -> None:
    """Kineto writes the host's name and the file's full path; neither belongs in a recording."""
    text = device.read_text()
    text = re.sub(r'("host_name": )"[^"]*"', r'\1"host"', text)
    text = re.sub(r'("traceName": )"[^"]*"', rf'\1"{device.name}"', text)
    device.write_text(text)


def _gzip(path: Path) -> Path:
    packed = path.with_name(path.name + ".gz")
    with (
        path.open("rb") as plain,
        packed.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as stream,
    ):
        shutil.copyfileobj(plain, stream)
    path.unlink()
    return packed
