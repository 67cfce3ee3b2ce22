"""Reading a window of a long profile, without ever holding the rest.

The file is read four times: where the window is; which calls lie in it; when the last work ends
that they launched; and then what the window needs. That is what begins in it, the work that its
calls launched, and of other work what may hold that up, until the last of it is over. Of the rest
there are counts, a bit for each correlation id of a call, and where a host trace is cut as well,
the record-function ids of operations. So cutting what was read gives what cutting all gives.

Profiles in which the meaning of a record depends on all others are read whole: those of several
processes, of unknown categories, with intervals of two records, with ids or times that are no
numbers or cannot be true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.converters.kineto.account import label
from chakra_et.converters.kineto.categories import (
    FORWARD_FLOWS,
    GRAPH_FLOWS,
    LAUNCH_FLOWS,
    LEFT_OUT,
    ROLES,
)
from chakra_et.converters.kineto.events import Event
from chakra_et.converters.kineto.phases import BEGIN, END
from chakra_et.converters.kineto.reader import Columns, read_columns
from chakra_et.converters.times import nanoseconds
from chakra_et.io.memory import collection_paused
from chakra_et.io.records import Layout, read_records
from chakra_et.io.repairs import Repairs
from chakra_et.recording import NO_ID, DeviceTrace, Role
from chakra_et.recording.device_trace import OUTSIDE

Chosen: TypeAlias = Callable[[str], bool]
_EVENTS: Final = Layout(Event, "traceEvents", ("ph", "name"), "schemaVersion")
"""Records as objects, also where the compiled kernel would make columns of them."""
_FLOWS: Final = LAUNCH_FLOWS | FORWARD_FLOWS | GRAPH_FLOWS
_PAGE: Final = 1 << 16
_MARGIN_NS: Final = 1_000_000
"""Work that ended shortly before the window may tell why other work began late."""
_BIT: Final = (1 << np.arange(8)).astype(np.uint8)
_DAY_NS: Final = 24 * 3600 * 10**9


class NotApartError(Exception):
    """The profile has to be read whole."""


class _Ids(msgspec.Struct, gc=False):
    """What ties a call and its work together, by the names of every vendor."""

    correlation: int = NO_ID
    connection: int = NO_ID


class _OpIds(msgspec.Struct, gc=False):
    rf_id: int = msgspec.field(default=0, name="Record function id")


_IDS: Final = msgspec.json.Decoder(list[_Ids])
_OP_IDS: Final = msgspec.json.Decoder(list[_OpIds])


@collection_paused()
def read_window(path: str | Path, strict: bool, chosen: Chosen, *, with_host: bool) -> DeviceTrace:
    """The part of a profile that a window of the `chosen` annotations needs.

    What is not held counts as outside of the window. `with_host` says that a host trace is cut
    beside it. Raises as `read_device` does.
    """
    sieve = Sieve(chosen)
    try:
        for take in (sieve.find_windows, sieve.find_calls, sieve.find_end):
            read_records(path, _EVENTS, partial(_Handed, take), strict=strict)
    except NotApartError:
        sieve.windows.clear()
    if not sieve.windows:
        # If nothing lies in it, the error tells what there is.
        return read_columns(path, Columns, strict)
    made: list[_Sieved] = []

    def new(path: str | Path, repairs: Repairs) -> Columns:
        made.append(_Sieved(path, repairs, sieve, with_host))
        return made[-1]

    device = read_columns(path, new, strict, _EVENTS)
    work = device.correlation[device.rows(Role.WORK)]
    calls = device.correlation[device.rows(Role.CALL)]
    device.outside_calls = work[sieve.called.has(work) & ~np.isin(work, calls)]
    device.outside_rf_ids = np.concatenate(made[-1].rf_ids or [np.zeros(0, np.int64)])
    return device


class _Handed:
    """Hands records on, and keeps none."""

    def __init__(self, take: Callable[[list[Event]], None], _: Repairs) -> None:
        self.add = take


class Sieve:
    """What of a profile a window needs."""

    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self.windows: set[tuple[int, int]] = set()
        self.called, self.launched = Ids(), Ids()
        """Correlation ids of all calls, and of those in a window."""
        self.arrows: set[tuple[str, Any, Any]] = set()
        """Arrows that have an end in a window."""
        self.last_ns = 0
        self.pids: set[str] = set()

    def find_windows(self, events: list[Event]) -> None:
        """Note when chosen annotations begin and end."""
        spans = _spans(events)
        if any(e.ph in (BEGIN, END) for e in events) or any(e.cat not in ROLES for e in spans):
            raise NotApartError
        start, duration = _times(spans)
        if np.any(duration < 0) or np.any(duration > _DAY_NS):
            raise NotApartError
        operations = [place for place, e in enumerate(spans) if ROLES[e.cat] is Role.OP]
        self.pids.update({str(spans[place].pid) for place in operations})
        if len(self.pids) > 1:
            raise NotApartError
        for place in operations:
            if self.chosen(spans[place].name):
                begin = int(start[place])
                self.windows.add((begin, begin + max(int(duration[place]), 1)))

    def find_calls(self, events: list[Event]) -> None:
        """Note the ids of calls, and the arrows that touch a window."""
        calls = [event for event in _spans(events) if ROLES[event.cat] is Role.CALL]
        ids = _correlations(calls)
        self.called.add(ids)
        self.launched.add(ids[self.within(_times(calls)[0])])
        arrows = [event for event in events if _is_arrow(event)]
        inside = np.flatnonzero(self.within(_times(arrows)[0]))
        self.arrows.update(_arrow(arrows[place]) for place in inside.tolist())

    def find_end(self, events: list[Event]) -> None:
        """Note when the last work of the window ends."""
        work = [event for event in _spans(events) if ROLES[event.cat] is Role.WORK]
        start, duration = _times(work)
        mine = self.within(start) | self.launched.has(_correlations(work))
        self.last_ns = max(self.last_ns, int((start + duration)[mine].max(initial=0)))

    def within(self, start: Rows) -> Mask:
        """Which records begin in a window."""
        found = np.zeros(len(start), np.bool_)
        for begin, end in self.windows:
            found |= (start >= begin) & (start < end)
        return found

    def holds(self, spans: list[Event]) -> Mask:
        """Which records that last are held."""
        start, duration = _times(spans)
        role = np.array([ROLES[event.cat] for event in spans], np.uint8)
        launched = np.zeros(len(spans), np.bool_)
        device = np.flatnonzero((role == Role.WORK) | (role == Role.CALL))
        launched[device] = self.launched.has(_correlations([spans[row] for row in device.tolist()]))
        first = min(begin for begin, _ in self.windows) - _MARGIN_NS
        last = max(self.last_ns, max(end for _, end in self.windows))
        beside = (role == Role.WORK) & (start + duration > first) & (start <= last)
        held: Mask = self.within(start) | launched | beside
        return held


class _Sieved(Columns):
    """Columns that take in what a window needs, and count the rest."""

    def __init__(self, path: str | Path, repairs: Repairs, sieve: Sieve, with_host: bool) -> None:
        super().__init__(path, repairs)
        self._sieve, self._with_host = sieve, with_host
        self.rf_ids: list[Rows] = []

    def _add_events(self, events: list[Event]) -> None:
        """Take in some records."""
        spans = _spans(events)
        dropped = [spans[row] for row in np.flatnonzero(~self._sieve.holds(spans)).tolist()]
        self.left_out.update((label(event.cat, "X"), OUTSIDE) for event in dropped)
        if self._with_host:
            operations = [event for event in dropped if ROLES[event.cat] is Role.OP]
            ids = _decoded(_OP_IDS, operations)
            self.rf_ids.append(np.array([each.rf_id for each in ids], np.int64))
        dropped += [e for e in events if _is_arrow(e) and _arrow(e) not in self._sieve.arrows]
        gone = set(map(id, dropped))
        super()._add_events([event for event in events if id(event) not in gone])
        self.counts.update(Counter([(event.cat, event.ph) for event in dropped]))


def _spans(events: list[Event]) -> list[Event]:
    return [event for event in events if event.ph == "X" and event.cat not in LEFT_OUT]


def _is_arrow(event: Event) -> bool:
    return event.ph in ("s", "f") and event.cat in _FLOWS


def _arrow(event: Event) -> tuple[str, Any, Any]:
    """What both ends of an arrow have in common; those between processes share no process."""
    return event.cat, None if event.cat in LAUNCH_FLOWS else event.pid, event.id


def _times(events: list[Event]) -> tuple[Rows, Rows]:
    """Starts and durations, as they stand in the file."""
    try:
        return (
            nanoseconds([event.ts for event in events]),
            nanoseconds([event.dur or b"0" for event in events]),
        )
    except ValueError:
        raise NotApartError from None


def _correlations(events: list[Event]) -> Rows:
    ids = _decoded(_IDS, events)
    return np.array(
        [e.connection if e.correlation == NO_ID else e.correlation for e in ids], np.int64
    )


def _decoded(decoder: msgspec.json.Decoder[list[Any]], events: list[Event]) -> list[Any]:
    try:
        return decoder.decode(b"[" + b",".join([e.args or b"{}" for e in events]) + b"]")
    except (msgspec.DecodeError, RecursionError):
        raise NotApartError from None


class Ids:
    """A set of integers: a bit for each, in pages."""

    def __init__(self) -> None:
        self._pages: dict[int, npt.NDArray[np.uint8]] = {}

    def add(self, ids: Rows) -> None:
        """Take in ids above 0."""
        for page, bits in _by_page(ids[ids > 0]):
            self._pages.setdefault(page, np.zeros(_PAGE >> 3, np.uint8))
            np.bitwise_or.at(self._pages[page], bits >> 3, _BIT[bits & 7])

    def has(self, ids: Rows) -> Mask:
        """Which of some ids are in the set."""
        found = np.zeros(len(ids), np.bool_)
        for page in np.unique(ids // _PAGE).tolist():
            rows = np.flatnonzero(ids // _PAGE == page)
            if page in self._pages:
                bits = ids[rows] % _PAGE
                found[rows] = self._pages[page][bits >> 3] & _BIT[bits & 7] != 0
        return found


def _by_page(ids: Rows) -> list[tuple[int, Rows]]:
    pages = ids // _PAGE
    return [(page, ids[pages == page] % _PAGE) for page in np.unique(pages).tolist()]
