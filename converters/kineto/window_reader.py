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
from msgspec.structs import replace

from chakra_et.codes import among
from chakra_et.columns import Mask, Rows, no_rows
from chakra_et.converters.kineto.events import Event
from chakra_et.converters.kineto.reader import LAYOUT, Columns, read_columns
from chakra_et.converters.kineto.roles import NO_ROLE
from chakra_et.converters.kineto.window_pieces import (
    Arrow,
    NotApartError,
    Piece,
    TextPiece,
    arrow_of,
    is_arrow,
    look,
    piece_decoder,
    spans,
)
from chakra_et.graph.intervals import inside, union
from chakra_et.io.memory import collection_paused
from chakra_et.io.records import read_records
from chakra_et.io.repairs import Repairs
from chakra_et.pool import Pool
from chakra_et.recording import DeviceTrace, IdSet, Role
from chakra_et.recording.device_trace import OUTSIDE

Chosen: TypeAlias = Callable[[str], bool]
_PIECES: Final = replace(LAYOUT, fast=piece_decoder)
_EVENTS: Final = msgspec.json.Decoder(list[Event])
_MARGIN_NS: Final = 1_000_000
"""Work that ended shortly before the window may tell why other work began late."""
_DAY_NS: Final = 24 * 3600 * 10**9


@collection_paused()
def read_window(path: str | Path, strict: bool, chosen: Chosen, *, with_host: bool) -> DeviceTrace:
    """The part of a profile that a window of the `chosen` annotations needs.

    What is not held counts as outside of the window. `with_host` says that a host trace is cut
    beside it. If nothing is in the window, there are only the names of all records, which an error
    can tell. Raises as `read_device` does.
    """
    sieve = Sieve(chosen)
    try:
        for take in (sieve.find_windows, sieve.find_calls, sieve.find_end):
            read = read_records(path, _PIECES, partial(_Handed, take), strict=strict)
            if read.found and not len(sieve.windows[0]):
                return DeviceTrace.of(Path(path), 0, read.repairs, names=sieve.names)
    except NotApartError:
        return read_columns(path, Columns, strict)
    made: list[_Sieved] = []

    def new(path: str | Path, repairs: Repairs) -> Columns:
        made.append(_Sieved(path, repairs, sieve, with_host))
        return made[-1]

    device = read_columns(path, new, strict, _PIECES)
    work = device.correlation[device.rows(Role.WORK)]
    calls = device.correlation[device.rows(Role.CALL)]
    device.outside_calls = work[sieve.called.has(work) & ~among(work, calls)]
    device.outside_rf_ids = made[-1].rf_ids
    return device


class _Handed:
    """Hands pieces on, and keeps none."""

    def __init__(self, take: Callable[[Piece], None], _: Repairs) -> None:
        self._take = take

    def add(self, piece: list[Event] | TextPiece, /) -> None:
        self._take(look(piece))


class Sieve:
    """What of a profile a window needs."""

    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self.windows = no_rows(), no_rows()
        """Starts and ends, apart from each other and in order."""
        self.names: Pool[str] = Pool()
        """Of all spans, in order of first use."""
        self.called, self.launched = IdSet(), IdSet()
        """Correlation ids of all calls, and of those in a window."""
        self.arrows: set[Arrow] = set()
        """Arrows that have an end in a window."""
        self.last_ns = 0
        self.pids: set[str] = set()

    def find_windows(self, piece: Piece) -> None:
        """Note when chosen annotations begin and end."""
        if piece.has_phases or np.any(piece.role == NO_ROLE):
            raise NotApartError
        if np.any(piece.duration_ns < 0) or np.any(piece.duration_ns > _DAY_NS):
            raise NotApartError
        operations = piece.role == Role.OP
        self.pids |= piece.processes(np.flatnonzero(operations))
        if len(self.pids) > 1:
            raise NotApartError
        names = piece.distinct_names
        for name in names:
            self.names[name]
        use = np.array([*map(self.chosen, names), False], np.bool_)
        rows = np.flatnonzero(operations & use[piece.name])
        begin = np.append(self.windows[0], piece.start_ns[rows])
        lasting = np.maximum(piece.duration_ns[rows], 1)
        self.windows = union(begin, np.append(self.windows[1], piece.start_ns[rows] + lasting))

    def find_calls(self, piece: Piece) -> None:
        """Note the ids of calls, and the arrows that touch a window."""
        calls = np.flatnonzero(piece.role == Role.CALL)
        ids = piece.correlations(calls)
        self.called.add(ids)
        self.launched.add(ids[self.within(piece.start_ns[calls])])
        self.arrows.update(piece.arrows(np.flatnonzero(self.within(piece.arrow_times()))))

    def find_end(self, piece: Piece) -> None:
        """Note when the last work of the window ends."""
        work = np.flatnonzero(piece.role == Role.WORK)
        start = piece.start_ns[work]
        mine = self.within(start) | self.launched.has(piece.correlations(work))
        self.last_ns = max(
            self.last_ns, int((start + piece.duration_ns[work])[mine].max(initial=0))
        )

    def within(self, start: Rows) -> Mask:
        """Which records begin in a window."""
        return inside(*self.windows, start)

    def holds(self, piece: Piece) -> Mask:
        """Which records that last are held."""
        role, start = piece.role, piece.start_ns
        launched = np.zeros(len(role), np.bool_)
        device = np.flatnonzero((role == Role.WORK) | (role == Role.CALL))
        launched[device] = self.launched.has(piece.correlations(device))
        first = int(self.windows[0][0]) - _MARGIN_NS
        last = max(self.last_ns, int(self.windows[1][-1]))
        beside = (role == Role.WORK) & (start + piece.duration_ns > first) & (start <= last)
        held: Mask = self.within(start) | launched | beside
        return held


class _Sieved(Columns):
    """Columns that take in what a window needs, and count the rest."""

    def __init__(self, path: str | Path, repairs: Repairs, sieve: Sieve, with_host: bool) -> None:
        super().__init__(path, repairs)
        self._sieve, self._with_host = sieve, with_host
        self.rf_ids = IdSet()

    def add(self, piece: Any, /) -> None:
        """Take in some records; few pieces that the kernel has read touch the window."""
        if not isinstance(piece, TextPiece):
            super().add(piece)
            return
        looked, records = look(piece), piece.records
        held = self._sieve.holds(looked)
        arrows = looked.arrows(np.arange(len(looked.arrow_times())))
        if held.any() or not self._sieve.arrows.isdisjoint(arrows):
            self._add_events(_EVENTS.decode(piece.text))
            return
        self._leave_out(looked, held)
        self._add_further(_EVENTS.decode(records.others))
        self.counts.update({(cat, phase): number for cat, phase, number in records.counts})

    def _add_events(self, events: list[Event]) -> None:
        """Take in some records."""
        looked = look(events)
        held = self._sieve.holds(looked)
        self._leave_out(looked, held)
        lasting = spans(events)
        dropped = [lasting[row] for row in np.flatnonzero(~held).tolist()]
        dropped += [e for e in events if is_arrow(e) and arrow_of(e) not in self._sieve.arrows]
        gone = set(map(id, dropped))
        super()._add_events([event for event in events if id(event) not in gone])
        self.counts.update(Counter([(event.cat, event.ph) for event in dropped]))

    def _leave_out(self, piece: Piece, held: Mask) -> None:
        """Count records that last and are not held."""
        dropped = np.flatnonzero(~held)
        for name, count in piece.labels(dropped).items():
            self.left_out[name, OUTSIDE] += count
        if self._with_host:
            self.rf_ids.add(piece.rf_ids(dropped[piece.role[dropped] == Role.OP]))
