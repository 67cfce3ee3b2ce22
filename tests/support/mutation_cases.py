"""Programs in which one kind of edge decides, run with some durations and with others."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from recordings import Profile
from traces import node, trace
from truth.linked import linked
from truth.machine import play
from truth.program import (
    Backward,
    Launch,
    Op,
    Program,
    Record,
    Statement,
    SyncDevice,
    SyncStream,
    WaitEvent,
)

from chakra_et.conversion import convert
from chakra_et.model import EdgeKind, Trace

Case = Callable[[float], Trace]
"""The trace of a program whose first part takes so many times as long."""


def _machine(*statements: Statement) -> Case:
    """What the linker makes of a run of the model machine; `gemm` and operations are scaled."""

    def run(factor: float) -> Trace:
        slow = {"gemm": factor}
        (made,) = play(
            Program([list(statements)]),
            lambda name: slow.get(name, factor if name.startswith("op") else 1.0),
        )
        return linked(made)

    return run


def _profile(make: Callable[[Profile, float], None]) -> Case:
    def run(factor: float) -> Trace:
        profile = Profile()
        make(profile, factor)
        with tempfile.TemporaryDirectory() as folder:
            return convert(None, profile.write(Path(folder) / "device.json")).trace

    return run


def _nested(profile: Profile, factor: float) -> None:
    """Operations that call another overload of themselves: that is one call, and one time."""
    for place in range(2):
        at = place * 500.0
        profile.op("exp", at, 20)
        profile.op("mm", at + 30, 100 + 100 * factor)
        profile.op("mm", at + 50, 100 * factor)


def _one_group(profile: Profile, factor: float) -> None:
    """Three collectives of one group, the last two on streams of their own."""
    group = {"Process Group Name": "0", "Group size": 2, "Collective name": "allreduce",
             "In msg nelems": 1, "Out msg nelems": 1, "dtype": "Float"}  # fmt: skip
    end = 0.0
    for number, (stream, took) in enumerate(((30, 50.0), (30, 400 * factor), (31, 80.0)), 1):
        profile.op("record_param_comms", 20.0 * number, 10, **group)
        profile.call("cudaLaunchKernel", 20.0 * number + 2, 5, number)
        begins = max(20.0 * number + 8, end)
        end = begins + took
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
        profile.kernel(name, begins, took, number, stream=stream, **group)


def _one_tensor(factor: float) -> Trace:
    """What a kernel writes is read on another stream: nothing else joins the two."""
    stream: dict[str, Any] = {"is_cpu_op": False, "device": 0}
    first, second = round(9000 * factor), 4000
    return trace(
        node(1, start=0, took=1000, name="fill", stream=7, **stream),
        node(2, start=1000, took=first, name="gemm", stream=7, kind=EdgeKind.STREAM, deps=(1,),
             **stream),
        node(3, start=1000 + first, took=second, name="relu", stream=20, kind=EdgeKind.DATA,
             deps=(2,), **stream),
    )  # fmt: skip


CASES: Final[dict[EdgeKind, Case]] = {
    EdgeKind.CALL: _profile(_nested),
    EdgeKind.PROGRAM: _machine(Op(2000), Op(3000), Op(4000)),
    EdgeKind.THREAD: _machine(Op(2000), Op(9000), Backward((Op(4000), Op(3000))), Op(2000)),
    EdgeKind.LAUNCH: _machine(Op(20_000), Op(9000), Launch(7, 8000, 9000, 10), SyncDevice(50)),
    EdgeKind.STREAM: _machine(
        Launch(7, 10, 9000, 5), Launch(7, 10, 90_000, 5), Launch(7, 10, 8000, 5, "relu"),
        SyncDevice(5),
    ),
    EdgeKind.SYNC: _machine(
        Launch(20, 10, 800, 5, "relu"), Launch(7, 10, 9000, 5), Launch(7, 10, 90_000, 5),
        SyncStream(7, 10), Op(30_000),
    ),
    EdgeKind.EVENT: _machine(
        Launch(7, 10, 9000, 5), Launch(7, 10, 90_000, 5), Record(7, 0, 5), WaitEvent(20, 0, 5),
        Launch(20, 10, 40_000, 5, "relu"), SyncDevice(5),
    ),
    EdgeKind.DATA: _one_tensor,
    EdgeKind.GROUP: _profile(_one_group),
}  # fmt: skip
"""A program for each kind of edge."""
