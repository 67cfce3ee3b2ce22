"""What the control group of this process, a container say, leaves it of memory and cores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

_MEMBERSHIP: Final = Path("/proc/self/cgroup")
_ROOT: Final = Path("/sys/fs/cgroup")
_NO_LIMIT: Final = 1 << 60
_FILES: Final = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""For each version: the limit, what is used, and of that, in memory.stat, what can be dropped."""


def cgroup_bytes(membership: Path = _MEMBERSHIP, root: Path = _ROOT) -> int | None:
    """The memory that is left within the limits of all groups around this process, if any has one.

    Both versions of control groups are read; a container sees its own group as the root.
    """
    left = [
        max(0, limit - used)
        for version, folder in _folders(membership, root)
        if (limit := _limit(version, folder)) is not None
        and (used := _used(version, folder)) is not None
    ]
    return min(left, default=None)


def cgroup_cores(membership: Path = _MEMBERSHIP, root: Path = _ROOT) -> float | None:
    """How many cores' time all groups around this process give it at once; None if any number."""
    given = [
        quota
        for version, folder in _folders(membership, root, "cpu")
        if (quota := _quota(version, folder)) is not None
    ]
    return min(given, default=None)


def _quota(version: int, folder: Path) -> float | None:
    try:
        if version == 2:
            allowed, period = (folder / "cpu.max").read_text().split()
        else:
            allowed = (folder / "cpu.cfs_quota_us").read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
        return int(allowed) / int(period) if int(allowed) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):  # `max` is no number
        return None


def _folders(
    membership: Path, root: Path, controller: str = "memory"
) -> Iterator[tuple[int, Path]]:
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if controllers and controller not in controllers.split(","):
            continue
        version, top = (1, root / controller) if controllers else (2, root)
        inside = PurePosixPath(path.lstrip("/"))
        for part in (inside, *inside.parents):
            yield version, top / part


def _limit(version: int, folder: Path) -> int | None:
    found = _number(folder / _FILES[version][0])
    return None if found is None or found >= _NO_LIMIT else found


def _used(version: int, folder: Path) -> int | None:
    """What is used without what can be dropped: the pages of files that were read."""
    _, current, droppable = _FILES[version]
    used = _number(folder / current)
    if used is None:
        return None
    try:
        lines = (folder / "memory.stat").read_text().splitlines()
        stat = dict(line.split(" ", 1) for line in lines)
        return used - int(stat.get(droppable, 0))
    except (OSError, ValueError):
        return used


def _number(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None
