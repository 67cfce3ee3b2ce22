"""Runs of many small ranks, under the names that recorders give their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from recordings import HostRecording, Profile

FIRST_PID: Final = 100_000


def rank_files(
    folder: Path,
    rank: int,
    device: str = "node_{pid}.1700000000000000{rank:03}.pt.trace.json",
    host: str | None = "et_{pid}.json",
    *,
    world: int | None = None,
    operations: int = 2,
) -> tuple[Path, Path | None]:
    """The profile of a rank and its host trace (None for none), which one process id ties.

    Only with `world` does the profile tell its rank.
    """
    pid = FIRST_PID + rank
    info = {} if world is None else {"backend": "nccl", "rank": rank, "world_size": world}
    recording, profile = HostRecording(pid=pid), Profile(info=info)
    for number in range(1, operations + 1):
        name = f"aten::op{rank}_{number}"
        recording.op(number + 2, name, rf_id=number)
        profile.op(name, 10.0 * number, 5.0, rf_id=number)
    for event in profile.events:
        event["pid"] = pid
    paths = [
        None if name is None else folder / name.format(rank=rank, pid=pid)
        for name in (device, host)
    ]
    for path in paths:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
    profile.write(paths[0])  # type: ignore[arg-type]
    return paths[0], paths[1] and recording.write(paths[1])  # type: ignore[return-value]


def run_of(folder: Path, ranks: int | Sequence[int], **names: str | None) -> Path:
    """A run of so many ranks, whose profiles tell which they are."""
    numbers = range(ranks) if isinstance(ranks, int) else ranks
    for rank in numbers:
        rank_files(folder, rank, world=len(numbers), **names)  # type: ignore[arg-type]
    return folder


def traces(folder: Path) -> dict[str, bytes]:
    """The ETs of a directory by name."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.et"))}
