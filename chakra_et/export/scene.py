"""What a timeline shows: slices on tracks of processes, and flows between them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows


@dataclass(frozen=True)
class Track:
    """A line of a timeline, within a process; both have names."""

    process: str
    name: str


@dataclass(frozen=True)
class Slices:
    """Intervals in columns: slice s lies on `tracks[track[s]]` from `start[s]` to `end[s]`, in ns.

    On a track, slices nest or follow each other; they stand in the order of starts there, a caller
    before what it calls. `name[s]` and `category[s]` are places in `names` and `categories`.
    `node[s]` is the id of the node, `rank[s]` that of its trace.
    """

    tracks: list[Track]
    names: list[str]
    categories: list[str]
    track: Rows
    start: Rows
    end: Rows
    name: Rows
    category: Rows
    node: npt.NDArray[np.uint64]
    rank: Rows

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Flows:
    """Arrows in columns: flow f leads from slice `source[f]` to `target[f]`.

    `kind[f]` is a place in `kinds`.
    """

    kinds: list[str]
    source: Rows
    target: Rows
    kind: Rows

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class Scene:
    """All that is shown. `ties` are slices that belong together: the members of a collective.

    `notes` are what a person should know, such as why there is no critical path.
    """

    slices: Slices
    flows: Flows
    ties: list[list[int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def nested(start: Rows, end: Rows) -> tuple[Rows, Rows]:
    """On which of as few lines as needed each interval lies, and how deep, so that all nest.

    Intervals come in the order of starts, the longer of equal ones first.
    """
    open_ends: list[list[int]] = []
    line = np.zeros(len(start), np.int64)
    depth = np.zeros(len(start), np.int64)
    for place, (begin, until) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        number = _first_fitting(open_ends, begin, until)
        line[place], depth[place] = number, len(open_ends[number])
        open_ends[number].append(until)
    return line, depth


def _first_fitting(open_ends: list[list[int]], begin: int, until: int) -> int:
    """The first line on which an interval nests; what is over by then is closed."""
    for number, ends in enumerate(open_ends):
        while ends and ends[-1] <= begin and not (ends[-1] == begin == until):
            ends.pop()
        if not ends or ends[-1] >= until:
            return number
    open_ends.append([])
    return len(open_ends) - 1
