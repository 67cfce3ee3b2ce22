"""Work that other work holds up: when all that it waits for has ended, and calls that did not."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import NEVER, NO_ROW, UNTIMED, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.edge_list import EdgeList

LAG_NS: Final = 20_000
"""Work that starts later than this after all that it is known to wait for waited for something that
the files do not show."""


def ready(table: Activities, edges: list[EdgeList], end: Rows) -> Rows:
    """When the last of what each activity waits for had ended; `UNTIMED` where there is none."""
    found = np.full(len(table), UNTIMED, np.int64)
    ends = np.where(table.work, table.end_ns, end)
    for some in edges:
        np.maximum.at(found, some.target, ends[some.source])
    return found


def ends_of_outrun(table: Activities, edges: list[EdgeList]) -> Rows:
    """By call, its end, where other work explains why all of its work began after that.

    Else the call would seem to last until then, and hold that work up when the other is faster.
    `edges` are those from that other work. For all else, a time that never comes.
    """
    held_until = ready(table, edges, table.end_ns)
    work = np.flatnonzero(table.work & (table.launch != NO_ROW))
    call = table.launch[work]
    explained = held_until[work] >= table.end_ns[call]
    explained &= table.start_ns[work] - held_until[work] <= LAG_NS
    until = np.full(len(table), NEVER, np.int64)
    np.minimum.at(until, call[explained], table.end_ns[call[explained]])
    return until
