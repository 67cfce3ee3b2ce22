"""Which device work carries which communication, whatever it is called.

What was launched inside the record of a collective carries it: a kernel of a communication library,
a kernel that communicates by itself, copies. One collective may take several pieces of device work;
it is one activity all the same, from the start of the first to the end of the last.
"""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np
from msgspec.structs import asdict, replace

from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.askers import find_askers
from chakra_et.linker.communication.views import Views
from chakra_et.recording import Kind
from chakra_et.recording.libraries import is_collective_operation, is_suspect

_REFERENCES: Final = ("caller", "launch", "nested_in", "host_order", "beside", "rests")
"""Columns of activities that hold rows of other activities."""
_LISTS: Final = ("host_order", "beside", "rests")
"""Those of them that do not have one entry for each activity."""


class Carriers(msgspec.Struct):
    """Device work that communicates.

    `asked[row]` is the record, range or operation that asked for what a row carries, `NO_ROW` where
    nothing did; `pieces[row]` the number of device records that became the row, where there are
    more than one; `merged` the rows in the profile that became part of another one's activity,
    `into` the rows of these activities, `lane` and `start_ns` the stream and start of each.
    """

    asked: dict[int, int]
    pieces: dict[int, int] = msgspec.field(default_factory=dict)
    merged: Rows = msgspec.field(default_factory=lambda: np.zeros(0, np.int64))
    into: Rows = msgspec.field(default_factory=lambda: np.zeros(0, np.int64))
    lane: Rows = msgspec.field(default_factory=lambda: np.zeros(0, np.int64))
    start_ns: Rows = msgspec.field(default_factory=lambda: np.zeros(0, np.int64))


def find_carriers(views: Views) -> tuple[Activities, Carriers]:
    """The table with one activity for each communication on a device, and these activities."""
    table = views.table
    work = np.flatnonzero(table.work)
    library = np.zeros(len(table), np.bool_)
    library[views.library_kernels()] = True
    suspect = np.zeros(len(table), np.bool_)
    suspect[views.rows_named(is_suspect, work=True)] = True
    asker = find_askers(views, work, suspect & ~library)
    asked = dict.fromkeys(np.flatnonzero(library).tolist(), NO_ROW)
    together: list[tuple[list[int], list[int]]] = []
    for one, rows in _by_asker(work, asker):
        chosen = _carrying(views, one, rows, library, suspect)
        asked |= dict.fromkeys(chosen, one)
        together += [(part, rows) for part in _apart(views, chosen) if len(part) > 1]
    return _joined(table, asked, together)


def _by_asker(work: Rows, asker: Rows) -> list[tuple[int, list[int]]]:
    """The work that each asker launched."""
    rows: dict[int, list[int]] = {}
    told = asker != NO_ROW
    for row, one in zip(work[told].tolist(), asker[told].tolist(), strict=True):
        rows.setdefault(one, []).append(row)
    return list(rows.items())


def _carrying(views: Views, asker: int, rows: list[int], library: Mask, suspect: Mask) -> list[int]:
    """What of the work that one asker launched carries its communication.

    Others may prepare or unpack: the kernels of a library stand before those that only seem to
    communicate, these before other kernels, and copies last; what the asker launched itself stands
    before what operations inside it did. A memset sends nothing.
    """
    if of_library := [row for row in rows if library[row]]:
        return of_library
    kinds = {row: views.kind(row) for row in rows}
    kernels = [row for row in rows if kinds[row] not in (Kind.COPY, Kind.FILL)]
    copies = [row for row in rows if kinds[row] == Kind.COPY]
    tiers = [[row for row in kernels if suspect[row]]]
    if _is_told(views, asker):
        for some in (kernels, copies):
            tiers += [[row for row in some if views.launched_by(row, asker)], some]
    elif is_collective_operation(views.name(asker)):
        tiers.append([row for row in kernels if views.launched_by(row, asker)])
    return next((tier for tier in tiers if tier), [])


def _is_told(views: Views, asker: int) -> bool:
    """Whether the asker says that it communicates: a record may be without any facts."""
    if not views.is_record(asker):
        return views.is_device_range(asker)
    return views.host_facts(asker) is not None


def _apart(views: Views, rows: list[int]) -> list[list[int]]:
    """Rows of one communication together: those of one device whose arguments do not differ.

    Work without arguments is of the first communication on its device.
    """
    parts: dict[int, dict[object, list[int]]] = {}
    bare: dict[int, list[int]] = {}
    for row in rows:
        facts, device = views.kernel_facts(row), views.device_of(row)
        if facts.name is None:
            bare.setdefault(device, []).append(row)
        else:
            key = (facts.name, facts.size_bytes, facts.group, facts.peer, facts.sequence)
            parts.setdefault(device, {}).setdefault(key, []).append(row)
    for device, without in bare.items():
        told = parts.setdefault(device, {None: []})
        next(iter(told.values())).extend(without)
    return [part for told in parts.values() for part in told.values()]


def _joined(
    table: Activities, asked: dict[int, int], together: list[tuple[list[int], list[int]]]
) -> tuple[Activities, Carriers]:
    """The table with one row for each of the parts that belong together.

    What else the asker launched and ran in between is a part, too.
    """
    keep = np.ones(len(table), np.bool_)
    end_ns = table.end_ns.copy()
    pieces: dict[int, int] = {}
    into = np.full(len(table), NO_ROW, np.int64)
    for part, rows in together:
        first = min(part, key=lambda row: (int(table.start_ns[row]), row))
        end_ns[first] = max(int(table.end_ns[row]) for row in part)
        others = [
            row
            for row in rows
            if row not in asked
            and table.start_ns[first] <= table.start_ns[row]
            and table.end_ns[row] <= end_ns[first]
        ]
        rest = [row for row in [*part, *others] if row != first]
        keep[rest], into[rest] = False, first
        pieces[first] = 1 + len(rest)
    if keep.all():
        return table, Carriers(asked)
    place = np.cumsum(keep) - 1
    joined = _selected(replace(table, end_ns=end_ns), keep, place)
    left = {int(place[row]): by for row, by in asked.items() if keep[row]}
    moved = {int(place[row]): count for row, count in pieces.items()}
    gone = ~keep
    columns = table.record[gone], place[into[gone]], table.lane[gone], table.start_ns[gone]
    return joined, Carriers(left, moved, *columns)


def _selected(table: Activities, keep: Mask, place: Rows) -> Activities:
    """The table of some rows; nothing refers to the others, which are device work."""
    columns = {}
    for name, column in asdict(table).items():
        moved = np.where(column == NO_ROW, NO_ROW, place[column]) if name in _REFERENCES else column
        columns[name] = moved if name in _LISTS else moved[keep]
    return Activities(**columns)
