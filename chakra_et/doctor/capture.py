"""What one rank has recorded, and the facts that checks ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.columns import Rows
from chakra_et.converters.kineto import split_processes
from chakra_et.errors import ChakraError
from chakra_et.inputs import Input
from chakra_et.io.json_text import from_json
from chakra_et.pairing import Pair
from chakra_et.recording import DeviceTrace, HostTrace, Kind, Role
from chakra_et.recording.libraries import COMMUNICATION, STEP

_WAITS: Final = (Kind.WAIT_STREAM, Kind.WAIT_DEVICE, Kind.WAIT_EVENT, Kind.STREAM_WAIT)
_MANIFEST: Final = "manifest.{rank}.json"


@dataclass
class Capture:
    """One rank: its files as far as they can be read, and the manifest if collect wrote one."""

    rank: int
    host: HostTrace | None = None
    device: DeviceTrace | None = None
    manifest: dict[str, Any] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    @cached_property
    def _operations(self) -> Rows:
        """The rows of operations in the profile."""
        if self.device is None:
            return np.zeros(0, np.int64)
        return self.device.rows(Role.OP)

    @cached_property
    def profiled_ids(self) -> Rows:
        """Record-function ids in the profile; 0 where an operation has none."""
        if self.device is None:
            return np.zeros(0, np.int64)
        return self.device.rf_id[self._operations]

    @cached_property
    def step_times(self) -> dict[int, tuple[int, int]]:
        """Start and duration of each step in the profile, in nanoseconds, by its number."""
        found: dict[int, tuple[int, int]] = {}
        if self.device is not None:
            names = [STEP.fullmatch(name) for name in self.device.names.in_order]
            codes = [code for code, match in enumerate(names) if match]
            rows = self._operations[np.isin(self.device.name[self._operations], codes)]
            for row in rows.tolist():
                match = names[self.device.name[row]]
                assert match is not None
                start, lasting = self.device.start_ns[row], self.device.duration_ns[row]
                found[int(match[1])] = int(start), int(lasting)
        return found

    @cached_property
    def steps(self) -> list[int]:
        """The numbers of the steps that are recorded."""
        return sorted(self.step_times)

    @cached_property
    def span_ns(self) -> tuple[int, int] | None:
        """When the first and the last record of the profile begin."""
        if self.device is None or len(self.device) == 0:
            return None
        return int(self.device.start_ns.min()), int(self.device.start_ns.max())

    @cached_property
    def communicates(self) -> bool:
        """Whether operations are called as those that communicate are."""
        names: list[str] = []
        for trace in (self.host, self.device):
            names += [] if trace is None else trace.names.in_order
        return any(COMMUNICATION.match(name) for name in names)

    @property
    def lists_groups(self) -> bool:
        """Whether a file lists the process groups."""
        by_host = self.host is not None and len(self.host.groups) > 0
        return by_host or (self.device is not None and len(self.device.groups) > 0)

    @property
    def world_size(self) -> int | None:
        """How many ranks the run has, if a file tells."""
        told = None if self.device is None else self.device.world_size
        if told is None:
            told = self.manifest.get("world_size")
        return told if isinstance(told, int) else None

    def count(self, role: Role) -> int:
        """How many records of a role the profile has."""
        return 0 if self.device is None else int((self.device.role == role).sum())

    @property
    def waits(self) -> int:
        """How many calls wait for a device, or make a stream wait."""
        if self.device is None:
            return 0
        calls = self.device.role == Role.CALL
        return int((calls & np.isin(self.device.kind, _WAITS)).sum())


def captures(pairs: Iterable[Pair]) -> Iterator[Capture]:
    """The recordings of pairs of files, by rank; of a merged profile, of each process."""
    for place, pair in enumerate(pairs):
        rank = place if pair.rank is None else pair.rank
        found = Capture(rank, files=[file.name for file in pair.files])
        found.manifest = _manifest(pair.files, rank)
        found.host = _read(pair.host, found)
        profile = _read(pair.device, found)
        parts = {} if profile is None else split_processes(profile)
        if len(parts) < 2:
            found.device = next(iter(parts.values()), None)
            yield found
            continue
        for number, (process, device) in enumerate(parts.items()):
            mine = found.host if found.host is not None and found.host.pid == process else None
            known = number if device.rank is None else device.rank
            yield Capture(known, mine, device, files=found.files)


def _read(given: Input | None, found: Capture) -> Any:
    if given is None:
        return None
    try:
        return given.read()
    except ChakraError as error:
        found.unreadable.append(str(error))
        return None


def _manifest(files: list[Input], rank: int) -> dict[str, Any]:
    """The manifest beside the files; empty where there is none that can be read."""
    path = Path(files[0].path).parent / _MANIFEST.format(rank=rank)
    try:
        content = from_json(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return {}
    return content if isinstance(content, dict) else {}
