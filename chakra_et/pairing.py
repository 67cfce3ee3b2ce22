"""Which files of a directory belong together: the host trace and the profile of each rank."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chakra_et.errors import ChakraError, FormatError
from chakra_et.io.archive import members
from chakra_et.io.sniff import WORKLOAD_REMEDY, FileKind, sniff
from chakra_et.io.source import head

_HEAD_BYTES: Final = 1 << 20
_HOST_PID: Final = re.compile(rb'"pid"\s*:\s*(\d+)')
_HOST_RECORD: Final = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|user_annotation|cuda_runtime|cuda_driver)"'
    rb'[^{}]*?"pid"\s*:\s*"?(\d+)'
)
_RANK: Final = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*(\d+)')
_RANK_IN_NAME: Final = (
    re.compile(r"rank[-_.]?(\d+)", re.IGNORECASE),
    # The end of a version number, as in `trace_1.0.2.json`, is no rank.
    re.compile(r"(?<!\d\.\d)(?<!\d\.\d\d)\.(\d+)\.json"),
    re.compile(r"[-_](\d+)\.json"),
)


@dataclass(frozen=True)
class Pair:
    """The files of one rank; one of them may be missing. `rank` is that of the files' names."""

    host: Path | None
    device: Path | None
    rank: int | None = None


@dataclass(frozen=True)
class _Candidate:
    path: Path
    kind: FileKind
    pid: int | None
    rank: int | None


def rank_in_name(path: str | Path) -> int | None:
    """The rank that a file's name tells (`rank3_trace.json`, `host.3.json.gz`), or None."""
    for pattern in _RANK_IN_NAME:
        match = pattern.search(Path(path).name)
        if match:
            return int(match[1])
    return None


def pair_directory(directory: str | Path) -> tuple[list[Pair], list[Path]]:
    """Pairs of host trace and profile, in order of rank, and the files that are neither.

    `directory` may also be an archive, or one file.

    Pairs have one process id; where ids do not tell, one rank; where there is but one of each
    kind, they are a pair. A linked trace, which holds both, counts where there are no others, as a
    host trace alone. Raises ChakraError when there is no such file.
    """
    folder = Path(directory)
    try:
        if folder.is_file():
            paths = [folder / name for name in members(folder)] or [folder]
        else:
            paths = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as error:
        raise ChakraError(
            f"cannot be read: {error.strerror or error}", path=folder, remedy="Check the path."
        ) from error
    looks = [(path, _look(path)) for path in paths]
    candidates = [found for _, found in looks if found is not None]
    others = [path for path, found in looks if found is None]
    hosts = [c for c in candidates if c.kind is FileKind.HOST]
    devices = [c for c in candidates if c.kind is FileKind.DEVICE]
    if not hosts and not devices:
        hosts = [c for c in candidates if c.kind is FileKind.LINKED]
    if not hosts and not devices:
        if paths == [folder]:
            remedy = (
                "Name a PyTorch host trace, a Kineto profile, or a directory or archive of them."
            )
            kind = sniff(folder)
            raise ChakraError(
                f"this is a file of kind {kind.value}",
                path=folder,
                remedy=WORKLOAD_REMEDY if kind is FileKind.WORKLOAD else remedy,
            )
        raise ChakraError(
            f"no trace in this directory: none of its {len(paths)} files is a PyTorch host trace "
            "or a Kineto profile",
            path=folder,
            remedy="Name a directory that holds the files of one run.",
        )
    pairs = []
    keys: list[Callable[[_Candidate], Hashable]] = [
        lambda c: c.pid and (c.pid, c.rank),
        lambda c: c.pid,
        lambda c: c.rank,
        lambda c: True,
    ]
    for key in keys:
        for host, device in _matches(hosts, devices, key):
            rank = host.rank if device.rank is None else device.rank
            pairs.append(Pair(host.path, device.path, rank))
            hosts.remove(host)
            devices.remove(device)
    pairs += [Pair(host.path, None, host.rank) for host in hosts]
    pairs += [Pair(None, device.path, device.rank) for device in devices]
    pairs.sort(key=lambda p: (p.rank is None, p.rank or 0, str(p.host or p.device)))
    return pairs, others


def _matches(
    hosts: list[_Candidate],
    devices: list[_Candidate],
    key: Callable[[_Candidate], Hashable],
) -> list[tuple[_Candidate, _Candidate]]:
    """Pairs in which both sides are the only ones of their kind with that key."""

    def only(items: list[_Candidate]) -> dict[Hashable, _Candidate]:
        found: dict[Hashable, list[_Candidate]] = {}
        for item in items:
            found.setdefault(key(item), []).append(item)
        return {k: same[0] for k, same in found.items() if k is not None and len(same) == 1}

    mine, theirs = only(hosts), only(devices)
    return [(mine[k], theirs[k]) for k in mine if k in theirs]


def _look(path: Path) -> _Candidate | None:
    """What a glance at a file tells; None for one that is no input."""
    try:
        kind = sniff(path)
    except FormatError:
        return None
    if kind not in (FileKind.HOST, FileKind.DEVICE, FileKind.LINKED):
        return None
    start = head(path, _HEAD_BYTES)
    pattern = _HOST_RECORD if kind is FileKind.DEVICE else _HOST_PID
    pid = pattern.search(start)
    rank = _RANK.search(start) if kind is FileKind.DEVICE else None
    return _Candidate(
        path, kind, int(pid[1]) if pid else None, int(rank[1]) if rank else rank_in_name(path)
    )
