"""What ASTRA-sim wrote about a run: when each rank finished, and each node if it was asked to tell.

Lines are known by what they say, whatever stands before it. With `"trace-enabled": 1` in the system
configuration, `log/log.log` has a line for the begin and one for the end of each node. A cycle is a
nanosecond.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.errors import ChakraError
from chakra_et.io.protected import note_input

UNKNOWN: Final = -1
"""A moment that no line tells."""
_FINISHED: Final = re.compile(
    rb"sys\[(\d{1,9})\] finished, (\d{1,18}) cycles(?:, exposed communication (\d{1,20}) cycles)?"
)
_FIGURE: Final = re.compile(
    rb"sys\[(\d{1,9})\], (CPU time|GPU time|Comm time|Total compute-communication overlap)"
    rb": (\d{1,18})\b"
)
_EVENT: Final = re.compile(
    rb"(issue|callback),sys->id=(\d{1,9}), tick=(\d{1,18}), node->id=(\d{1,19}), "
    rb"node->name=([^\n]*), node->type=\d+"
)
_CRITICAL: Final = re.compile(rb"\[critical\] ?([^\n]{0,500})")
_FIGURES: Final = {
    b"CPU time": "cpu_ns",
    b"GPU time": "compute_ns",
    b"Comm time": "comm_ns",
    b"Total compute-communication overlap": "overlap_ns",
}
_MOST_NS: Final = 1 << 62
"""The simulator's unsigned counters fall below 0 in some modes; such a number says nothing."""


@dataclass
class SimulatedNodes:
    """Nodes of one rank in the order of their first line: id, begin and end in ns, and name."""

    id: npt.NDArray[np.uint64]
    start_ns: Rows
    end_ns: Rows
    name: list[str]

    def __len__(self) -> int:
        return len(self.id)


@dataclass
class AstraLog:
    """A run of the simulator. Times in ns, by rank.

    `figures` has `cpu_ns`, `compute_ns`, `comm_ns` and `overlap_ns` where the log tells them;
    `critical` are messages of failure.
    """

    finish_ns: dict[int, int] = field(default_factory=dict)
    exposed_comm_ns: dict[int, int] = field(default_factory=dict)
    figures: dict[int, dict[str, int]] = field(default_factory=dict)
    nodes: dict[int, SimulatedNodes] = field(default_factory=dict)
    critical: list[str] = field(default_factory=list)


def read_astra_log(path: str | Path) -> AstraLog:
    """Read what the simulator printed or logged: a file, or a directory with `log.log` in it.

    Raises ChakraError where nothing in it tells of a run.
    """
    path = Path(path)
    log, events = AstraLog(), _Events()
    for file in _files(path):
        note_input(file)
        try:
            content = file.read_bytes()
        except OSError as error:
            raise ChakraError(f"cannot be read: {error.strerror or error}", path=file) from error
        _read_ranks(content, log)
        events.read(content)
    log.nodes = events.by_rank()
    if not log.finish_ns and not log.nodes:
        raise _nothing(path, log)
    return log


def _files(path: Path) -> list[Path]:
    """The files of a log in the order in which they were written: the oldest has the most."""
    if not path.is_dir():
        return [path]
    for folder in (path, path / "log"):
        rotated = {int(m[1]): f for f in folder.glob("log.*.log")
                   if (m := re.fullmatch(r"log\.(\d{1,4})\.log", f.name))}  # fmt: skip
        found = [rotated[place] for place in sorted(rotated, reverse=True)]
        last = folder / "log.log"
        if last.is_file():
            return [*found, last]
    raise ChakraError(
        "there is no log.log in this directory",
        path=path,
        remedy="Name the file that holds what the simulator printed.",
    )


def _read_ranks(content: bytes, log: AstraLog) -> None:
    for match in _FINISHED.finditer(content):
        rank, ns = int(match[1]), int(match[2])
        if ns < _MOST_NS:
            log.finish_ns[rank] = ns
        if match[3] is not None and int(match[3]) < _MOST_NS:
            log.exposed_comm_ns[rank] = int(match[3])
    for match in _FIGURE.finditer(content):
        log.figures.setdefault(int(match[1]), {})[_FIGURES[match[2]]] = int(match[3])
    log.critical += [match[1].decode("utf-8", "replace") for match in _CRITICAL.finditer(content)]


class _Events:
    """Begins and ends of nodes, from all files of a log."""

    def __init__(self) -> None:
        self.found: dict[int, dict[int, list[int]]] = {}
        self.names: dict[int, dict[int, str]] = {}

    def read(self, content: bytes) -> None:
        """Take all events of one file; of a node that occurs again the first ones count."""
        for what, rank, tick, node, name in self._lines(content):
            times = self.found.setdefault(rank, {}).setdefault(node, [UNKNOWN, UNKNOWN])
            place = what == b"callback"
            if times[place] == UNKNOWN:
                times[place] = tick
            self.names.setdefault(rank, {}).setdefault(node, name)

    @staticmethod
    def _lines(content: bytes) -> Iterator[tuple[bytes, int, int, int, str]]:
        known: dict[bytes, str] = {}
        for match in _EVENT.finditer(content):
            raw = match[5]
            if raw not in known:
                known[raw] = raw.decode("utf-8", "surrogateescape")
            yield match[1], int(match[2]), int(match[3]), int(match[4]), known[raw]

    def by_rank(self) -> dict[int, SimulatedNodes]:
        """The nodes of which begin and end are told, by rank."""
        return {rank: self._of(rank) for rank in sorted(self.found)}

    def _of(self, rank: int) -> SimulatedNodes:
        times = {n: t for n, t in self.found[rank].items() if UNKNOWN not in t and t[1] >= t[0]}
        both = np.array(list(times.values()), np.int64).reshape(-1, 2)
        names = [self.names[rank][node] for node in times]
        return SimulatedNodes(np.array(list(times), np.uint64), both[:, 0], both[:, 1], names)


def _nothing(path: Path, log: AstraLog) -> ChakraError:
    if log.critical:
        return ChakraError(
            f"the simulator ran nothing: {log.critical[0]}",
            path=path,
            remedy="chakra validate --profile astra-sim says what it will not run.",
        )
    return ChakraError(
        "no rank finishes in this log, and no node begins",
        path=path,
        remedy="Give what the simulator printed, or its log/log.log. A run that ends without a "
        "word has failed: chakra validate --profile astra-sim says why.",
    )
