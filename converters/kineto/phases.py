"""Intervals that a file tells by two records, their beginning and their end (phases B and E)."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from chakra_et.converters.kineto.events import Event
from chakra_et.converters.times import time_or_none

BEGIN: Final = "B"
END: Final = "E"
_ARGS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def pair(events: list[Event]) -> list[tuple[Event, Event]]:
    """Beginnings with their ends, in the order of the beginnings in the file.

    On each thread an end closes the last beginning that is open, or the last one of its name where
    it has one: ends at one time may stand in any order. Records that are left over, or that have no
    time, have no partner.
    """
    times = [time_or_none(bytes(event.ts)) for event in events]
    timed = [(time, place) for place, time in enumerate(times) if time is not None]
    open_now: dict[tuple[str, str], list[int]] = {}
    found: list[tuple[int, int]] = []
    for _, place in sorted(timed):
        event = events[place]
        stack = open_now.setdefault((str(event.pid), str(event.tid)), [])
        if event.ph == BEGIN:
            stack.append(place)
            continue
        depth = _closed_by(event, [events[begin].name for begin in stack])
        if depth is not None:
            found.append((stack.pop(depth), place))
    return [(events[begin], events[end]) for begin, end in sorted(found)]


def _closed_by(end: Event, open_names: list[str]) -> int | None:
    """The place of what an end closes among what is open on its thread."""
    if not open_names:
        return None
    if not end.name or open_names[-1] == end.name:
        return len(open_names) - 1
    same = [depth for depth, name in enumerate(open_names) if name == end.name]
    return same[-1] if same else None


def interval(begin: Event, end: Event) -> Event:
    """The record of one phase (X) that says what the two say."""
    start, stop = (time_or_none(bytes(event.ts)) for event in (begin, end))
    assert start is not None
    assert stop is not None
    whole, rest = divmod(stop - start, 1000)
    return Event(
        ph="X",
        cat=begin.cat or end.cat,
        name=begin.name or end.name,
        pid=begin.pid,
        tid=begin.tid,
        ts=begin.ts,
        dur=msgspec.Raw(b"%d.%03d" % (whole, rest)),
        args=_both(begin.args, end.args),
    )


def _both(first: msgspec.Raw, second: msgspec.Raw) -> Any:
    """The arguments of both records; those of the end count where both have one."""
    if not bytes(first) or not bytes(second):
        return first or second
    try:
        both = _ARGS.decode(first) | _ARGS.decode(second)
    except (msgspec.DecodeError, RecursionError):
        return first
    return msgspec.Raw(msgspec.json.encode(both))
