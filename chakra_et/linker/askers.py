"""What asked for communication around a launch: a record, a range, an operation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chakra_et.linker.activities import Activities
from chakra_et.linker.nesting import NONE
from chakra_et.linker.seen import ANCESTORS, Seen
from chakra_et.recording import Kind
from chakra_et.recording.libraries import (
    COLLECTIVE_OPERATION,
    NO_COMMUNICATION,
    REQUEST,
    is_collective_operation,
)

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def find_askers(seen: Seen, work: Rows, suspects: Mask) -> Rows:
    """For each piece of work what asked for communication around its launch, or `NONE`.

    That is the innermost record of a collective, else the range of a process group; for kernels
    that seem to communicate by themselves, else an operation that is named like a collective, for
    others one that is a collective and nothing else.
    """
    table = seen.table
    asker = _around(table, work, seen.records())
    silent = [r for r in np.unique(asker[asker != NONE]).tolist() if _says_no(seen, r)]
    asker[np.isin(asker, silent)] = NONE
    ranges = _around(table, work, seen.device_ranges())
    asker = np.where(asker == NONE, ranges, asker)
    asker = _by_closed_records(seen, work, asker)
    if suspects.any():
        named = seen.rows_named(
            lambda name: COLLECTIVE_OPERATION.match(name) is not None, work=False
        )
        operations = _around(table, work, named)
        asker = np.where((asker == NONE) & suspects[work], operations, asker)
    pure = _around(table, work, seen.rows_named(is_collective_operation, work=False))
    return np.where(asker == NONE, pure, asker)


def _by_closed_records(seen: Seen, work: Rows, asker: Rows) -> Rows:
    """Askers, and those whose record had closed when they launched what carries them.

    The operation of the framework around a record (`c10d::allreduce_`) launched it then: a kernel
    after the record, where nothing was launched inside.
    """
    table = seen.table
    idle = np.setdiff1d(np.array(seen.records(), np.int64), asker)
    asked = {
        int(table.caller[row]): row
        for row in idle[np.argsort(table.start_ns[idle], kind="stable")].tolist()
        if table.caller[row] != NONE
        and seen.name(int(table.caller[row])).startswith(REQUEST)
        and not _says_no(seen, row)
    }
    operation = _around(table, work, list(asked))
    for place in np.flatnonzero((asker == NONE) & (operation != NONE)).tolist():
        record, launch = asked[int(operation[place])], int(table.launch[work[place]])
        behind = launch != NONE and table.start_ns[launch] >= table.end_ns[record]
        if behind and seen.kind(int(work[place])) != Kind.COPY:
            asker[place] = record
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
