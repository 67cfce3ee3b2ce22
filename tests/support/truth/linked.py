"""What the linker makes of the files of a run, and which activity each node is."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from chakra_et.conversion import convert
from chakra_et.model import Trace, TraceSet

from .files import play_and_write, write
from .machine import Key, Run
from .program import Program

BASE_NS = 1_700_000_000_000_000_000


def linked(run: Run, **options: Any) -> Trace:
    """The trace of what the machine recorded."""
    with tempfile.TemporaryDirectory() as folder:
        host, device = write(run, Path(folder), **options)
        return convert(host, device).trace


def linked_ranks(program: Program, runs: list[Run]) -> TraceSet:
    """The traces of all ranks of a program."""
    with tempfile.TemporaryDirectory() as folder:
        files = play_and_write(program, runs, Path(folder))
        return TraceSet({r: convert(*pair).trace for r, pair in enumerate(files)})


def keys(trace: Trace, run: Run) -> list[Key | None]:
    """Which activity of the machine each node is."""
    works = {(a.correlation, a.start): a.key for a in run.activities if a.key[0] == "work"}
    column = trace.nodes.attributes.dense
    rows = zip(
        column("stream", -1, np.int64).tolist(),
        column("correlation", 0, np.int64).tolist(),
        column("rf_id", 0, np.int64).tolist(),
        trace.nodes.start_ns.tolist(),
        strict=True,
    )
    found: list[Key | None] = []
    for stream, correlation, rf_id, start in rows:
        if stream >= 0:
            found.append(works[correlation, start - BASE_NS])
        else:
            found.append(("call", correlation) if correlation else ("op", rf_id) if rf_id else None)
    return found
