"""A host trace and a device trace of one run, as files."""

from __future__ import annotations

import gzip as gzip_module
import io
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from .model import Training
from .run import Run
from .text import device_head, device_tail

LAYERS = 24  # of a full-size step; a small run gets a shallower model


@dataclass(frozen=True)
class PairFacts:
    """What a pair contains."""

    host: Path
    device: Path
    ops: int  # recorded on both sides: ops and annotations
    host_nodes: int  # `ops` and the process, thread and process-group nodes
    launches: int  # runtime calls that put work on the device
    kernels: int
    copies: int
    memsets: int
    collectives: int
    steps: int
    host_bytes: int
    device_bytes: int


@dataclass(frozen=True)
class Plan:
    """How many layers each step has, and how many ops fill up the last one."""

    layers: tuple[int, ...]
    fill: int
    main_ops: int


def _count(layers: int) -> tuple[int, int]:
    """Ops of a step on the main and the autograd thread."""
    nothing = _Nothing()
    run = Run(0, nothing, (nothing, nothing, nothing), 0)
    Training(run, layers).step(1, layers)
    return run.main.index, run.autograd.index


class _Nothing(io.StringIO):
    def write(self, text: str, /) -> int:
        return len(text)


def make_plan(host_ops: int) -> Plan:
    (main1, back1), (main2, back2) = _count(1), _count(2)
    per_layer = main2 + back2 - main1 - back1
    per_step = main1 + back1 - per_layer
    steps = max(1, round(host_ops / (per_step + LAYERS * per_layer)))
    total = max(steps, (host_ops - steps * per_step) // per_layer)
    layers = tuple(total // steps + (i < total % steps) for i in range(steps))
    fill = max(0, host_ops - steps * per_step - total * per_layer)
    main = steps * (main1 - (main2 - main1)) + total * (main2 - main1) + fill
    return Plan(layers, fill, main)


@contextmanager
def _writing(path: Path, gzip: bool) -> Iterator[IO[str]]:
    if not gzip:
        with path.open("w", encoding="utf-8", newline="\n", buffering=1 << 20) as out:
            yield out
        return
    with (
        path.open("wb") as raw,
        gzip_module.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        io.TextIOWrapper(io.BufferedWriter(packed, 1 << 20), "utf-8", newline="\n") as out,
    ):
        yield out


def make_pair(
    host_ops: int, seed: int, directory: Path, gzip: bool = False, *, by_steps: bool = False
) -> PairFacts:
    """Write `host.json` and `device.json` (with `gzip`: `….json.gz`) into `directory`.

    The pair has exactly `host_ops` ops, or as many as the smallest step has. With `by_steps`, the
    device trace has the same records step by step, not thread by thread: so it is written at once,
    and takes no room for parts.
    """
    plan = make_plan(host_ops)
    directory.mkdir(parents=True, exist_ok=True)
    suffix = ".json.gz" if gzip else ".json"
    host_path, device_path = directory / f"host{suffix}", directory / f"device{suffix}"
    if by_steps:
        with _writing(host_path, gzip) as host, _writing(device_path, gzip) as device:
            device.write(device_head())
            run = _record(Run(seed, host, (device, device, device), plan.main_ops), plan)
            device.write(device_tail(run.now))
        return _facts(run, plan, host_path, device_path)
    with ExitStack() as stack:
        parts: list[IO[str]] = []
        for _ in range(3):  # Kineto lists events thread by thread, then the device's
            parts.append(
                stack.enter_context(tempfile.TemporaryFile("w+", dir=directory, encoding="utf-8"))
            )
        host = stack.enter_context(_writing(host_path, gzip))
        run = _record(Run(seed, host, (parts[0], parts[1], parts[2]), plan.main_ops), plan)
        with _writing(device_path, gzip) as device:
            device.write(device_head())
            for part in parts:
                part.seek(0)
                shutil.copyfileobj(part, device, 1 << 20)
            device.write(device_tail(run.now))
    return _facts(run, plan, host_path, device_path)


def _record(run: Run, plan: Plan) -> Run:
    """Let a run go through all steps of a plan."""
    training = Training(run, max(plan.layers))
    for number, layers in enumerate(plan.layers, 1):
        training.step(number, layers, plan.fill if number == len(plan.layers) else 0)
    run.finish()
    assert run.main.index == plan.main_ops
    return run


def _facts(run: Run, plan: Plan, host_path: Path, device_path: Path) -> PairFacts:
    ops = run.autograd.index  # it counts on from the main thread
    counts = run.counts
    return PairFacts(
        host=host_path,
        device=device_path,
        ops=ops,
        host_nodes=ops + counts.root_nodes,
        launches=counts.launches,
        kernels=counts.kernels,
        copies=counts.copies,
        memsets=counts.memsets,
        collectives=counts.collectives,
        steps=len(plan.layers),
        host_bytes=host_path.stat().st_size,
        device_bytes=device_path.stat().st_size,
    )
