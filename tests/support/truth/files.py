"""What a profiler and the framework would have written of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recordings import HostRecording, Profile

from truth.machine import MAIN, Activity, Run
from truth.program import Program


def profile(
    run: Run,
    *,
    records: bool = True,
    sequences: bool = True,
    flows: bool = False,
    rank: int = 0,
    world: int = 1,
    clock_ns: int = 0,
) -> Profile:
    """The Kineto profile of a run.

    It holds cuda_sync `records`, `sequences` (numbers of forward and backward operations) and
    `flows` between them only where that is asked for.
    """
    written = Profile()
    if world > 1:
        ranks = list(range(world))
        group = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": world, "ranks": ranks}
        written.info.update(rank=rank, world_size=world, pg_config=[group])
    for activity in run.activities:
        start, length = (activity.start + clock_ns) / 1000, (activity.end - activity.start) / 1000
        if activity.key[0] == "op":
            written.op(_name(activity), start, length, rf_id=activity.key[1], tid=activity.lane,
                       **(_sequence(activity) if sequences else {}))  # fmt: skip
            if flows and activity.sequence >= 0:
                phase = "f" if activity.forward_thread else "s"
                written.flow(phase, activity.sequence, start, tid=activity.lane)
        elif activity.key[0] == "call":
            written.call(activity.name, start, length, activity.correlation, tid=activity.lane)
            if records and activity.sync_kind:
                _add_record(written, activity, start, length)
        else:
            copy = activity.name.startswith("Memcpy")
            written.kernel(_name(activity), start, length, activity.correlation,
                           stream=activity.lane, cat="gpu_memcpy" if copy else "kernel",
                           **_collective(activity, world))  # fmt: skip
    return written


def write(run: Run, folder: Path, **options: Any) -> tuple[Path, Path]:
    """Host trace and profile of a run."""
    rank = options.get("rank", 0)
    host = HostRecording(pid=4000)
    ops = [a for a in run.activities if a.key[0] == "op"]
    for number, op in enumerate(ops):
        host.op(number + 3, _name(op), rf_id=op.key[1], tid=1 if op.lane == MAIN else 2)
    device = profile(run, **options).write(folder / f"device.{rank}.json")
    return host.write(folder / f"host.{rank}.json"), device


def play_and_write(program: Program, runs: list[Run], folder: Path) -> list[tuple[Path, Path]]:
    """Files of all ranks, whose clocks differ."""
    world = len(program.ranks)
    return [
        write(run, folder, rank=rank, world=world, clock_ns=rank * 1_000_003)
        for rank, run in enumerate(runs)
    ]


def _name(activity: Activity) -> str:
    if activity.key[0] == "op":
        return f"{activity.name} {activity.key[1]}"
    if activity.collective:
        return f"ncclDevKernel_AllReduce_Sum_f32_RING_LL {activity.key[1]}"
    if activity.name.startswith("Memcpy"):
        return activity.name
    return f"{activity.name} {activity.key[1]}"


def _sequence(activity: Activity) -> dict[str, Any]:
    if activity.sequence < 0:
        return {}
    return {"Sequence number": activity.sequence, "Fwd thread id": activity.forward_thread}


def _collective(activity: Activity, world: int) -> dict[str, Any]:
    if not activity.collective:
        return {}
    return {
        "Collective name": "allreduce",
        "In msg nelems": 256,
        "Out msg nelems": 256,
        "dtype": "Float",
        "Process Group Name": "0",
        "Process Group Ranks": str(list(range(world))),
        "Group size": world,
    }


def _add_record(written: Profile, call: Activity, start: float, length: float) -> None:
    args = {
        "cuda_sync_kind": call.sync_kind,
        "stream": call.stream,
        "correlation": call.correlation,
        "device": 0,
        "context": 1,
    }
    if call.awaited >= 0:
        args["wait_on_stream"] = call.awaited
        args["wait_on_cuda_event_record_corr_id"] = call.record
    written._add("cuda_sync", call.sync_kind, 0, call.stream, start, length, args)
