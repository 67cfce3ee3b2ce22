"""Reading the flow arrows that are evidence of edges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from chakra_et.codes import codes, distinct, row_keys
from chakra_et.columns import NO_ROW, Rows, no_rows
from chakra_et.converters.kineto.events import Event
from chakra_et.converters.times import nanoseconds, time_or_none
from chakra_et.recording import Ends, Flows

Integers = Callable[[list[Any], int], Rows]

Side: TypeAlias = tuple[Rows, Rows, Rows, Rows]
"""Keys (group and id, two rows), processes, threads and times of one end of all arrows."""

ARROW_PHASES: Final = ("s", "f")


class ArrowReader:
    """Collects the arrows of some categories while a profile is read.

    With `least`, only those count whose id is a number no less than that. With `across`, an arrow
    may lead from one process to another, and one beginning to several ends.
    """

    def __init__(
        self, categories: frozenset[str], least: int | None = None, *, across: bool = False
    ) -> None:
        self._categories, self._least, self._across = categories, least, across
        self._columns: dict[str, list[list[Rows]]] = {phase: [] for phase in ARROW_PHASES}

    def add(self, events: list[Event], integers: Integers) -> None:
        """Take in the arrows among some records; `integers` reads ids. Ends without a time go."""
        for phase, parts in self._columns.items():
            ends = [e for e in events if e.ph == phase and e.cat in self._categories]
            if self._least is not None:
                ends = [e for e in ends if isinstance(e.id, int) and e.id >= self._least]
            try:
                times = nanoseconds([e.ts for e in ends])
            except ValueError:
                ends = [e for e in ends if time_or_none(bytes(e.ts)) is not None]
                times = nanoseconds([e.ts for e in ends])
            ids = [integers([getattr(e, name) for e in ends], 0) for name in ("pid", "tid", "id")]
            parts.append([self._group(ends, ids[0]), *ids, times])

    def add_columns(self, names: list[str], sides: Sequence[Sequence[Rows]]) -> None:
        """Take in the beginnings and the ends of arrows that count, of these and other categories.

        Columns of either are codes into `names`, processes, threads, ids and times.
        """
        order = sorted(self._categories)
        places = [order.index(name) if name in order else NO_ROW for name in names]
        for phase, (category, *columns) in zip(ARROW_PHASES, sides, strict=True):
            if len(category) and max(places) != NO_ROW:
                group = np.array(places, np.int64)[category]
                ends = [column[group != NO_ROW] for column in columns]
                key = group[group != NO_ROW] if self._across else ends[0]
                self._columns[phase].append([key, *ends])

    def _group(self, ends: list[Event], pid: Rows) -> Rows:
        """What ends must share beside an id: the process, or across processes the category."""
        if not self._across:
            return pid
        order = sorted(self._categories)
        return np.array([order.index(event.cat) for event in ends], np.int64)

    def pairs(self, base_time_ns: int) -> Flows:
        """Both ends of each arrow.

        Ends belong together by process and id. An id that is used again pairs in order of time, if
        it has as many beginnings as ends.
        """
        sides = [_sorted(self._columns[phase]) for phase in ARROW_PHASES]
        if self._across:
            return _fan_out(sides, base_time_ns)
        keys = np.concatenate([side[0] for side in sides], axis=1)
        code = codes(*keys)
        of_sides = np.split(code, [sides[0][0].shape[1]])
        counts = [np.bincount(c, minlength=int(code.max(initial=-1)) + 1) for c in of_sides]
        whole = counts[0] == counts[1]
        kept = [np.flatnonzero(whole[c]) for c in of_sides]
        source, target = (
            Ends(pid[rows], tid[rows], time[rows] + base_time_ns)
            for (_, pid, tid, time), rows in zip(sides, kept, strict=True)
        )
        lost = sum(len(c) - len(rows) for c, rows in zip(of_sides, kept, strict=True))
        return Flows(source, target, lost, sum(map(len, of_sides)))


def _fan_out(sides: list[Side], base_time_ns: int) -> Flows:
    """An arrow for each end: from the last beginning with its id before it, else the first."""
    (keys, pid, tid, time), (end_keys, end_pid, end_tid, end_time) = sides
    count = len(time)
    number = codes(*np.concatenate((keys, end_keys), axis=1))
    key = row_keys(number, np.append(time, end_time))
    order = np.argsort(key[:count], kind="stable")
    behind = np.searchsorted(key[:count][order], key[count:], "right")
    wanted = number[count:]
    place = np.full(len(end_time), -1, np.int64)
    for shift in (0, -1):  # the last one before the end is tried last, so that it counts
        at = np.clip(behind + shift, 0, max(count - 1, 0))
        found = number[:count][order][at] == wanted if count else np.zeros(len(wanted), np.bool_)
        place[found] = order[at[found]] if count else -1
    kept = place >= 0
    source = Ends(pid[place[kept]], tid[place[kept]], time[place[kept]] + base_time_ns)
    target = Ends(end_pid[kept], end_tid[kept], end_time[kept] + base_time_ns)
    begun = len(distinct(place[kept]))
    return Flows(source, target, int(np.count_nonzero(~kept)) + count - begun, count + len(kept))


def _sorted(parts: list[list[Rows]]) -> Side:
    """Key (group and id), process, thread and time of each end, by key and time."""
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)] or [no_rows()] * 5
    group, _, _, number, time = columns
    order = np.lexsort((time, number, group))
    group, pid, tid, number, time = (column[order] for column in columns)
    return np.stack((group, number)), pid, tid, time
