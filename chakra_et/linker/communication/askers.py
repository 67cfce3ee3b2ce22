"""What asked for communication around a launch: a record, a range, an operation."""

from __future__ import annotations

import numpy as np

from chakra_et.codes import among, distinct
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.views import ANCESTORS, Views
from chakra_et.recording import Kind
from chakra_et.recording.libraries import (
    COLLECTIVE_OPERATION,
    NO_COMMUNICATION,
    REQUEST,
    is_collective_operation,
)


def find_askers(views: Views, work: Rows, suspects: Mask) -> Rows:
    """For each piece of work what asked for communication around its launch, or `NO_ROW`.

    That is the innermost record of a collective, else the range of a process group; for kernels
    that seem to communicate by themselves, else an operation that is named like a collective, for
    others one that is a collective and nothing else.
    """
    table = views.table
    asker = _around(table, work, views.records())
    silent = [r for r in distinct(asker[asker != NO_ROW]).tolist() if _says_no(views, r)]
    asker[among(asker, silent)] = NO_ROW
    ranges = _around(table, work, views.device_ranges())
    asker = np.where(asker == NO_ROW, ranges, asker)
    asker = _by_closed_records(views, work, asker)
    if suspects.any():
        named = views.rows_named(
            lambda name: COLLECTIVE_OPERATION.match(name) is not None, work=False
        )
        operations = _around(table, work, named)
        asker = np.where((asker == NO_ROW) & suspects[work], operations, asker)
    pure = _around(table, work, views.rows_named(is_collective_operation, work=False))
    return np.where(asker == NO_ROW, pure, asker)


def _by_closed_records(views: Views, work: Rows, asker: Rows) -> Rows:
    """Askers, and those whose record had closed when they launched what carries them.

    The operation of the framework around a record (`c10d::allreduce_`) launched it then: a kernel
    after the record, where nothing was launched inside.
    """
    table = views.table
    records = np.array(views.records(), np.int64)
    idle = distinct(records[~among(records, asker)])
    asked = {
        int(table.caller[row]): row
        for row in idle[np.argsort(table.start_ns[idle], kind="stable")].tolist()
        if table.caller[row] != NO_ROW
        and views.name(int(table.caller[row])).startswith(REQUEST)
        and not _says_no(views, row)
    }
    operation = _around(table, work, list(asked))
    for place in np.flatnonzero((asker == NO_ROW) & (operation != NO_ROW)).tolist():
        record, launch = asked[int(operation[place])], int(table.launch[work[place]])
        behind = launch != NO_ROW and table.start_ns[launch] >= table.end_ns[record]
        if behind and views.kind(int(work[place])) != Kind.COPY:
            asker[place] = record
    return asker


def _says_no(views: Views, record: int) -> bool:
    facts = views.host_facts(record)
    return facts is not None and facts.name in NO_COMMUNICATION


def _around(table: Activities, work: Rows, wanted: list[int]) -> Rows:
    """For each piece of work the innermost of the wanted activities around its launch."""
    found = np.full(len(work), NO_ROW, np.int64)
    if not wanted:
        return found
    chosen = np.zeros(len(table), np.bool_)
    chosen[wanted] = True
    launch = table.launch[work]
    at = table.caller[np.where(launch == NO_ROW, work, launch)]
    place = np.flatnonzero(at != NO_ROW)
    at = at[place]
    for _ in range(ANCESTORS):
        hit = chosen[at]
        found[place[hit]] = at[hit]
        at = table.caller[at]
        left = ~hit & (at != NO_ROW)
        place, at = place[left], at[left]
    return found
