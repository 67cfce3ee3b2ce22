"""Pieces of a profile as far as choosing a window needs them, from columns or from objects."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Any, Final, Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.codes import distinct
from chakra_et.columns import Rows
from chakra_et.converters.kineto.account import label
from chakra_et.converters.kineto.categories import (
    FORWARD_FLOWS,
    GRAPH_FLOWS,
    LAUNCH_FLOWS,
    LEFT_OUT,
    ROLES,
)
from chakra_et.converters.kineto.compiled import ProfileRecords, profile_decoder
from chakra_et.converters.kineto.events import Event
from chakra_et.converters.kineto.phases import BEGIN, END
from chakra_et.converters.kineto.roles import NO_ROLE
from chakra_et.converters.times import nanoseconds
from chakra_et.recording import NO_ID

Arrow: TypeAlias = "tuple[str, Any, Any]"
"""What both ends of an arrow have in common; those between processes share no process."""
_FLOWS: Final = LAUNCH_FLOWS | FORWARD_FLOWS | GRAPH_FLOWS
_RF_ID, _CORRELATION = 1, 4
"""Places among the numbers of a piece that the kernel has read."""


class NotApartError(Exception):
    """The profile has to be read whole."""


class Piece(Protocol):
    """Some records. Columns are of spans: records that last."""

    @property
    def has_phases(self) -> bool:
        """Whether intervals of two records are among them."""

    @property
    def role(self) -> npt.NDArray[np.uint8]:
        """The role of each span, `NO_ROLE` where its category is not known."""

    @property
    def start_ns(self) -> Rows:
        """As it stands in the file."""

    @property
    def duration_ns(self) -> Rows: ...

    @property
    def distinct_names(self) -> list[str]:
        """Names of spans, in order of first use."""

    @property
    def name(self) -> npt.NDArray[np.int64]:
        """Codes into the distinct names."""

    def processes(self, rows: Rows) -> set[str]:
        """The processes of some spans."""

    def correlations(self, rows: Rows) -> Rows:
        """What ties a call and its work together."""

    def rf_ids(self, rows: Rows) -> Rows:
        """Record-function ids of operations."""

    def arrow_times(self) -> Rows:
        """When ends of arrows are that are evidence."""

    def arrows(self, rows: Rows) -> list[Arrow]:
        """The arrows of some of these ends."""

    def labels(self, rows: Rows) -> Counter[str]:
        """How many of some spans there are, by what a report calls them."""


class TextPiece(msgspec.Struct, frozen=True):
    """A piece that the kernel has read, with its text: where it is needed, objects are made."""

    text: bytes
    records: ProfileRecords
    count: int

    def __len__(self) -> int:
        return self.count


class _Decoder:
    """Gives what the kernel has read piece by piece."""

    def __init__(self, decoder: Any) -> None:
        self._decoder = decoder

    def decode_elements(self, text: memoryview, count: int) -> TextPiece | None:
        piece = self._decoder.decode_elements(text, count)
        if piece is None:
            return None
        if piece.first:
            piece.take()  # Who wrote a file is told by its first records, as objects.
            return None
        return TextPiece(b"".join((b"[", text[:count], b"]")), piece.take(), len(piece))


def piece_decoder() -> Any:
    """What reads pieces, where the kernel is there; None for a piece is one for Python."""
    decoder = profile_decoder()
    return None if decoder is None else _Decoder(decoder)


class Columns:
    """Columns of a piece that the kernel has read."""

    def __init__(self, piece: ProfileRecords) -> None:
        self._piece = piece
        self.role = piece.columns["role"]
        self.start_ns, self.duration_ns = piece.columns["start_ns"], piece.columns["duration_ns"]
        self.distinct_names, self.name = piece.names, piece.columns["name"]

    @property
    def has_phases(self) -> bool:
        return any(phase in (BEGIN, END) for _, phase, _ in self._piece.counts)

    def processes(self, rows: Rows) -> set[str]:
        return set(map(str, distinct(self._piece.columns["pid"][rows]).tolist()))

    def correlations(self, rows: Rows) -> Rows:
        return self._piece.numbers[_CORRELATION][rows]

    def rf_ids(self, rows: Rows) -> Rows:
        return self._piece.numbers[_RF_ID][rows]

    def arrow_times(self) -> Rows:
        return np.concatenate([times for *_, times in self._piece.arrows])

    def arrows(self, rows: Rows) -> list[Arrow]:
        names = self._piece.arrow_categories
        columns = [np.concatenate(both) for both in zip(*self._piece.arrows, strict=True)]
        category, pid, _, number, _ = (column[rows].tolist() for column in columns)
        return [
            _arrow(names[code], process, ident)
            for code, process, ident in zip(category, pid, number, strict=True)
        ]

    def labels(self, rows: Rows) -> Counter[str]:
        codes, counts = np.unique(self._piece.columns["category"][rows], return_counts=True)
        names = [label(self._piece.categories[code], "X") for code in codes.tolist()]
        return Counter(dict(zip(names, counts.tolist(), strict=True)))


class _Ids(msgspec.Struct, gc=False):
    """What ties a call and its work together, by the names of every vendor."""

    correlation: int = NO_ID
    connection: int = NO_ID


class _OpIds(msgspec.Struct, gc=False):
    rf_id: int = msgspec.field(default=0, name="Record function id")


_IDS: Final = msgspec.json.Decoder(list[_Ids])
_OP_IDS: Final = msgspec.json.Decoder(list[_OpIds])


class Objects:
    """A piece that was read in Python."""

    def __init__(self, events: list[Event]) -> None:
        self._events = events
        self.spans = spans(events)

    @property
    def has_phases(self) -> bool:
        return any(event.ph in (BEGIN, END) for event in self._events)

    @cached_property
    def role(self) -> npt.NDArray[np.uint8]:
        return np.array([ROLES.get(event.cat, NO_ROLE) for event in self.spans], np.uint8)

    @cached_property
    def start_ns(self) -> Rows:
        return _times([event.ts for event in self.spans])

    @cached_property
    def duration_ns(self) -> Rows:
        return _times([event.dur or b"0" for event in self.spans])

    @cached_property
    def distinct_names(self) -> list[str]:
        return list(dict.fromkeys(event.name for event in self.spans))

    @cached_property
    def name(self) -> npt.NDArray[np.int64]:
        code = {name: place for place, name in enumerate(self.distinct_names)}
        return np.array([code[event.name] for event in self.spans], np.int64)

    def processes(self, rows: Rows) -> set[str]:
        return {str(self.spans[row].pid) for row in rows.tolist()}

    def correlations(self, rows: Rows) -> Rows:
        ids = self._decoded(_IDS, rows)
        found = [e.connection if e.correlation == NO_ID else e.correlation for e in ids]
        return np.array(found, np.int64)

    def rf_ids(self, rows: Rows) -> Rows:
        return np.array([each.rf_id for each in self._decoded(_OP_IDS, rows)], np.int64)

    @cached_property
    def _ends(self) -> list[Event]:
        return [event for event in self._events if is_arrow(event)]

    def arrow_times(self) -> Rows:
        return _times([event.ts for event in self._ends])

    def arrows(self, rows: Rows) -> list[Arrow]:
        return [arrow_of(self._ends[row]) for row in rows.tolist()]

    def labels(self, rows: Rows) -> Counter[str]:
        return Counter([label(self.spans[row].cat, "X") for row in rows.tolist()])

    def _decoded(self, decoder: msgspec.json.Decoder[list[Any]], rows: Rows) -> list[Any]:
        args = [self.spans[row].args or b"{}" for row in rows.tolist()]
        try:
            return decoder.decode(b"[" + b",".join(args) + b"]")
        except (msgspec.DecodeError, RecursionError):
            raise NotApartError from None


def look(piece: list[Event] | TextPiece) -> Piece:
    """A piece as the reader gives it."""
    return Columns(piece.records) if isinstance(piece, TextPiece) else Objects(piece)


def spans(events: list[Event]) -> list[Event]:
    """The records that last, but those of categories that are never used."""
    return [event for event in events if event.ph == "X" and event.cat not in LEFT_OUT]


def is_arrow(event: Event) -> bool:
    """Whether a record is an end of an arrow that is evidence."""
    return event.ph in ("s", "f") and event.cat in _FLOWS


def arrow_of(event: Event) -> Arrow:
    """The arrow that a record is an end of."""
    return _arrow(event.cat, event.pid, event.id)


def _arrow(category: str, process: Any, number: Any) -> Arrow:
    return category, None if category in LAUNCH_FLOWS else process, number


def _times(texts: list[Any]) -> Rows:
    """Times as they stand in the file."""
    try:
        return nanoseconds(texts)
    except ValueError:
        raise NotApartError from None
