"""Which device work carries which communication, whatever it is called.

What was launched inside the record of a collective carries it: a kernel of a communication library,
a kernel that communicates by itself, copies. One collective may take several pieces of device work;
it is one activity all the same, from the start of the first to the end of the last.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.linker.activities import Activities
from chakra_et.linker.communication_table import COLLECTIVE_OPERATION, NO_COMMUNICATION, SUSPECT
from chakra_et.linker.nesting import NONE
from chakra_et.linker.seen import ANCESTORS, RECORD, Seen

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_REFERENCES: Final = ("caller", "launch", "nested_in", "host_order", "beside", "rests")
"""Columns of activities that hold rows of other activities."""
_LISTS: Final = ("host_order", "beside", "rests")
"""Those of them that do not have one entry for each activity."""
_NOT_WORK_OF_ANY: Final = "memset"
_COPY: Final = "memcpy"


@dataclass
class Carriers:
    """Device work that communicates.

    `asked[row]` is the record, range or operation that asked for what a row carries, `NONE` where
    nothing did; `pieces[row]` the number of device records that became the row, where there are
    more than one; `merged` the rows in the profile that became part of another one's activity,
    and `into` the rows of these activities.
    """

    asked: dict[int, int]
    pieces: dict[int, int] = field(default_factory=dict)
    merged: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    into: Rows = field(default_factory=lambda: np.zeros(0, np.int64))


def find_carriers(seen: Seen) -> tuple[Activities, Carriers]:
    """The table with one activity for each communication on a device, and these activities."""
    table = seen.table
    work = np.flatnonzero(table.work)
    library = np.zeros(len(table), np.bool_)
    library[seen.library_kernels()] = True
    suspect = np.zeros(len(table), np.bool_)
    suspect[seen.rows_named(lambda name: SUSPECT.search(name) is not None, work=True)] = True
    asker = _askers(seen, work, suspect & ~library)
    asked = dict.fromkeys(np.flatnonzero(library).tolist(), NONE)
    together: list[tuple[list[int], list[int]]] = []
    for one, rows in _by_asker(work, asker):
        chosen = _carrying(seen, one, rows, library, suspect)
        asked |= dict.fromkeys(chosen, one)
        together += [(part, rows) for part in _apart(seen, chosen) if len(part) > 1]
    return _joined(table, asked, together)


def _askers(seen: Seen, work: Rows, suspects: Mask) -> Rows:
    """For each piece of work what asked for communication around its launch, or `NONE`.

    That is the innermost record of a collective, else the range of a process group; for kernels
    that seem to communicate by themselves, else an operation that is named like a collective.
    """
    table = seen.table
    asker = _around(table, work, seen.records())
    silent = [r for r in np.unique(asker[asker != NONE]).tolist() if _says_no(seen, r)]
    asker[np.isin(asker, silent)] = NONE
    ranges = _around(table, work, seen.device_ranges())
    asker = np.where(asker == NONE, ranges, asker)
    if suspects.any():
        named = seen.rows_named(
            lambda name: COLLECTIVE_OPERATION.match(name) is not None, work=False
        )
        operations = _around(table, work, named)
        asker = np.where((asker == NONE) & suspects[work], operations, asker)
    return asker


def _says_no(seen: Seen, record: int) -> bool:
    facts = seen.host_facts(record)
    return facts is not None and facts.name in NO_COMMUNICATION


def _around(table: Activities, work: Rows, wanted: list[int]) -> Rows:
    """For each piece of work the innermost of the wanted activities around its launch."""
    chosen = np.zeros(len(table), np.bool_)
    chosen[wanted] = True
    launch = table.launch[work]
    at = table.caller[np.where(launch == NONE, work, launch)]
    found = np.full(len(work), NONE, np.int64)
    for _ in range(ANCESTORS if wanted else 0):
        hit = (at != NONE) & (found == NONE) & chosen[at]
        found[hit] = at[hit]
        at = np.where(at == NONE, NONE, table.caller[at])
    return found


def _by_asker(work: Rows, asker: Rows) -> list[tuple[int, list[int]]]:
    """The work that each asker launched."""
    rows: dict[int, list[int]] = {}
    for row, one in zip(work.tolist(), asker.tolist(), strict=True):
        if one != NONE:
            rows.setdefault(one, []).append(row)
    return list(rows.items())


def _carrying(seen: Seen, asker: int, rows: list[int], library: Mask, suspect: Mask) -> list[int]:
    """What of the work that one asker launched carries its communication.

    Others may prepare or unpack: the kernels of a library stand before those that only seem to
    communicate, these before other kernels, and copies last; what the asker launched itself stands
    before what operations inside it did. A memset sends nothing.
    """
    kinds = {row: seen.category(row).lower() for row in rows}
    kernels = [r for r in rows if _COPY not in kinds[r] and _NOT_WORK_OF_ANY not in kinds[r]]
    copies = [row for row in rows if _COPY in kinds[row]]
    tiers = [[r for r in rows if library[r]], [r for r in kernels if suspect[r]]]
    if _is_told(seen, asker):
        for some in (kernels, copies):
            tiers += [[row for row in some if seen.launched_by(row, asker)], some]
    return next((tier for tier in tiers if tier), [])


def _is_told(seen: Seen, asker: int) -> bool:
    """Whether the asker says that it communicates: a record may be without any facts."""
    if seen.name(asker) != RECORD:
        return seen.is_device_range(asker)
    return seen.host_facts(asker) is not None


def _apart(seen: Seen, rows: list[int]) -> list[list[int]]:
    """Rows of one communication together: those of one device whose arguments do not differ."""
    parts: dict[object, list[int]] = {}
    for row in rows:
        facts = seen.kernel_facts(row)
        key = (seen.device_of(row), facts.name, facts.size_bytes, facts.group, facts.peer)
        parts.setdefault(key, []).append(row)
    return list(parts.values())


def _joined(
    table: Activities, asked: dict[int, int], together: list[tuple[list[int], list[int]]]
) -> tuple[Activities, Carriers]:
    """The table with one row for each of the parts that belong together.

    What else the asker launched on the same streams in between is a part, too.
    """
    keep = np.ones(len(table), np.bool_)
    end_ns = table.end_ns.copy()
    pieces: dict[int, int] = {}
    into = np.full(len(table), NONE, np.int64)
    for part, rows in together:
        first = min(part, key=lambda row: (int(table.start_ns[row]), row))
        end_ns[first] = max(int(table.end_ns[row]) for row in part)
        lanes = {int(table.lane[row]) for row in part}
        others = [
            row
            for row in rows
            if row not in asked
            and int(table.lane[row]) in lanes
            and table.start_ns[first] <= table.start_ns[row]
            and table.end_ns[row] <= end_ns[first]
        ]
        gone = [row for row in [*part, *others] if row != first]
        keep[gone], into[gone] = False, first
        pieces[first] = 1 + len(gone)
    if keep.all():
        return table, Carriers(asked)
    place = np.cumsum(keep) - 1
    joined = _selected(replace(table, end_ns=end_ns), keep, place)
    left = {int(place[row]): by for row, by in asked.items() if keep[row]}
    moved = {int(place[row]): count for row, count in pieces.items()}
    return joined, Carriers(left, moved, table.record[~keep], place[into[~keep]])


def _selected(table: Activities, keep: Mask, place: Rows) -> Activities:
    """The table of some rows; nothing refers to the others, which are device work."""
    columns = {}
    for item in fields(table):
        column = getattr(table, item.name)
        if item.name in _REFERENCES:
            column = np.where(column == NONE, NONE, place[column])
        columns[item.name] = column if item.name in _LISTS else column[keep]
    return Activities(**columns)
