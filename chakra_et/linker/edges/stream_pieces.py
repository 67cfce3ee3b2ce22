"""Order on the other streams of a communication that took pieces of work on several."""

from __future__ import annotations

import numpy as np

from chakra_et.codes import search_rows
from chakra_et.columns import Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.carriers import Carriers
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.waits.stream_order import StreamOrder


def stream_piece_edges(table: Activities, streams: StreamOrder, carriers: Carriers) -> EdgeList:
    """Edges between a communication and its neighbours on streams that it is not shown on.

    It has the stream of its first piece. What came before another piece on that one's stream, it
    waits for; what came after, waits for it. Evidence: recorded times, which no edge contradicts.
    """
    other = carriers.lane != table.lane[carriers.into]
    into, lane, start = carriers.into[other], carriers.lane[other], carriers.start_ns[other]
    order = streams.order
    # Within a lane the order is that of starts; lanes ascend.
    place = search_rows((table.lane[order], table.start_ns[order]), (lane, start), "left")
    before, after = _on(table, order, place - 1, lane), _on(table, order, place, lane)
    pairs = []
    for neighbour, leads in ((before, True), (after, False)):
        there = neighbour >= 0
        row, own = order[neighbour[there]], into[there]
        source, target = (row, own) if leads else (own, row)
        fits = table.end_ns[source] <= table.start_ns[target]
        pairs.append((source[fits], target[fits]))
    source, target = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    return EdgeList.by(Evidence.STREAM_ORDER, source, target)


def _on(table: Activities, order: Rows, place: Rows, lane: Rows) -> Rows:
    """Places whose work is on a lane; -1 for others."""
    inside = (place >= 0) & (place < len(order))
    place = np.where(inside, place, 0)
    there = inside & (table.lane[order[place]] == lane) if len(order) else inside
    return np.where(there, place, -1)
