"""Transfers that a backend on the host closed late: they end where what they brought is read.

Gloo closes the range of a transfer some time after it has told those who wait that it is done. What
reads the result has seen that end, so it is better evidence than the range's own.
"""

from __future__ import annotations

import numpy as np

from chakra_et.codes import among
from chakra_et.columns import NEVER
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.workers import Workers
from chakra_et.linker.edge_list import EdgeList
from chakra_et.shown import several


def end_at_readers(table: Activities, data: EdgeList, workers: Workers) -> list[str]:
    """End transfers where their first reader begins, if that is before the recorded end.

    `data` are edges from writers to readers. Not by guesses, nor by operations that wait for a
    transfer, which begin before it has ended; and not before what the backend did inside is over.
    Returns what a person should know.
    """
    transfers = workers.transfers
    if len(transfers) == 0:
        return []
    number = np.full(len(table), -1, np.int64)
    number[transfers] = np.arange(len(transfers))
    inner_end = table.start_ns[transfers]
    np.maximum.at(inner_end, number[workers.around], table.end_ns[workers.inside])
    source, target = data.source[~data.inferred], data.target[~data.inferred]
    waits = among(target, workers.waits) | (number[target] >= 0)
    reads = (number[source] >= 0) & ~waits & (table.lane[source] != table.lane[target])
    which, begins = number[source[reads]], table.start_ns[target[reads]]
    able = begins > inner_end[which]
    first = np.full(len(transfers), NEVER, np.int64)
    np.minimum.at(first, which[able], begins[able])
    cut = first < table.end_ns[transfers]
    if not cut.any():
        return []
    late = table.end_ns[transfers[cut]] - first[cut]
    table.end_ns[transfers[cut]] = first[cut]
    return [
        f"{several(int(np.count_nonzero(cut)), 'transfer was', 'transfers were')} "
        f"still open when the data was read, for up to {late.max() / 1000:.0f} us; "
        "each ends where its first reader begins"
    ]
