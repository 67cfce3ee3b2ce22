"""Data: an operation waits for the one that last wrote what it reads.

Only reading after writing is an edge. Where memory is handed out anew, or written by what no record
tells, what was known of it ends. `docs/edges.md` states the rules.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.codes import distinct, order_of
from chakra_et.columns import NO_ROW, Mask, Rows, count_up, no_rows
from chakra_et.graph import last_awaited
from chakra_et.linker.activities import Activities, begin_order
from chakra_et.linker.communication.communication import Communication
from chakra_et.linker.edge_list import EdgeList, in_time
from chakra_et.linker.edges.data.accesses import Accesses, Actors, find_accesses
from chakra_et.linker.edges.data.call_tree import call_tree
from chakra_et.linker.edges.data.operation_work import host_callers, operation_work
from chakra_et.linker.evidence import Codes, Evidence
from chakra_et.linker.waits.stream_order import StreamOrder
from chakra_et.model import EdgeKind
from chakra_et.recording import HostTrace
from chakra_et.shown import several

PARTS: Final = 64
"""Memory that is used in more parts than this at a time, on average, is taken as a whole."""


def data_edges(
    table: Activities,
    host: HostTrace | None,
    communication: dict[int, Communication],
    warnings: list[str],
) -> EdgeList:
    """Edges from writers to readers: between device work for memory of a device, else between
    operations.

    Evidence: ids of storages in the host trace, and the order in which its operations began. An
    edge is inferred where the parts of a memory are too many to tell them apart.
    """
    if host is None:
        return EdgeList.by(Evidence.DATA_STORAGE, no_rows(), no_rows())
    count = len(host)
    caller = host_callers(table, count)
    tree = call_tree(caller[:count], begin_order(host, table.caller))
    actors = Actors.of(host, communication, tree)
    work = operation_work(table, caller, actors.acting)
    found = find_accesses(host, actors, tree, work)
    writer, reader, whole = last_writers(found)
    source, target = found.node[writer], found.node[reader]
    on_device = found.on_device[reader] & work.known
    source[on_device] = work.last[source[on_device]]
    target[on_device] = work.first[target[on_device]]
    sound = (source != NO_ROW) & (target != NO_ROW) & (source != target)
    by = np.where(whole, np.uint8(Evidence.DATA_WHOLE), np.uint8(Evidence.DATA_STORAGE))
    edges = _distinct(source[sound], target[sound], by[sound])
    return in_time(edges, ~table.work[edges.source], table.end_ns, table.start_ns, warnings)


def mark_only_ties(
    table: Activities,
    streams: StreamOrder,
    data: EdgeList,
    others: list[EdgeList],
    recorded: bool,
    warnings: list[str],
) -> EdgeList:
    """Data edges, inferred where no other edge makes their target's stream wait for their source.

    Where the profiler `recorded` waits, there was none, and these edges are left out.
    """
    alone = only_ties(table, streams, data, others)
    if not recorded:
        certain = alone & ~data.inferred
        by = np.where(certain, np.uint8(Evidence.DATA_ONLY_TIE), data.evidence)
        return EdgeList(data.kind, data.source, data.target, by)
    if alone.any():
        warnings.append(
            f"{several(int(np.count_nonzero(alone)), 'data edge', 'data edges')} between streams "
            f"{'was' if np.count_nonzero(alone) == 1 else 'were'} left out: by the "
            "profiler's records, nothing makes the reader wait for the writer"
        )
    return data.select(~alone)


def only_ties(
    table: Activities, streams: StreamOrder, data: EdgeList, others: list[EdgeList]
) -> Mask:
    """Which data edges between streams are all that makes their target wait for their source."""
    lane, place = table.lane, np.zeros(len(table), np.int64)
    for order in (table.host_order, streams.order, np.flatnonzero(table.joins)):
        place[order] = np.arange(len(order))
    between = table.work[data.source] & (lane[data.source] != lane[data.target])
    source = np.concatenate([e.source for e in others if e.kind is not EdgeKind.CALL])
    target = np.concatenate([e.target for e in others if e.kind is not EdgeKind.CALL])
    use = (lane[source] != NO_ROW) & (lane[target] != NO_ROW) & (lane[source] != lane[target])
    alone = np.zeros(len(data), np.bool_)
    for of in distinct(lane[data.source[between]]).tolist():
        mine = np.flatnonzero(between & (lane[data.source] == of))
        reached = last_awaited(lane, place, source[use], target[use], of)
        alone[mine] = reached[data.target[mine]] < place[data.source[mine]]
    return alone


def last_writers(found: Accesses) -> tuple[Rows, Rows, Mask]:
    """Pairs of accesses: each that reads, and the last one before it to write each part of it.

    The third column marks pairs of memory that was taken as a whole.
    """
    part, row, whole = _parts(found)
    order = order_of(part, row)
    part, row, whole = part[order], row[order], whole[order]
    writes = found.writes[row]
    place = np.arange(len(row))
    last = np.maximum.accumulate(np.where(writes, place, -1)) if len(row) else place
    paired = ~writes & (last >= 0) & (part[last] == part) & found.told[row[last]]
    return row[last[paired]], row[paired], whole[paired]


def _parts(found: Accesses) -> tuple[Rows, Rows, Mask]:
    """Each access once for each part of memory that it touches: part, access, taken as a whole.

    Parts lie between the bounds of all accesses to one memory in one life. A life begins where
    the memory is handed out anew.
    """
    life = _lives(found)
    rows = np.flatnonzero(found.end > found.begin)
    life, begin, end = life[rows], found.begin[rows], found.end[rows]
    differs = np.zeros(len(rows), np.bool_)
    differs[1:] = (begin[1:] != begin[:-1]) | (end[1:] != end[:-1])
    differs[1:] &= life[1:] == life[:-1]
    several = np.zeros(int(life.max(initial=-1)) + 1, np.bool_)
    several[life[differs]] = True
    cut = np.flatnonzero(several[life])
    first, count = _between_borders(life[cut], begin[cut], end[cut])
    pieces = np.bincount(life[cut], count, minlength=len(several))
    many = pieces > PARTS * np.bincount(life[cut], minlength=len(several))
    kept = ~many[life[cut]]
    cut, first, count = cut[kept], first[kept], count[kept]
    within = count_up(count)
    uncut = np.flatnonzero(~several[life] | many[life])
    part = np.append(life[uncut], len(several) + np.repeat(first, count) + within)
    row = np.append(rows[uncut], np.repeat(rows[cut], count))
    whole = np.append(many[life[uncut]], np.zeros(len(within), np.bool_))
    return part, row, whole


def _lives(found: Accesses) -> Rows:
    """The life that each access belongs to; all that one operation renews at once is one life."""
    again = np.zeros(len(found), np.bool_)
    again[1:] = found.renews[:-1] & (found.node[1:] == found.node[:-1])
    starts = found.renews & ~again
    if len(found):
        starts[0] = True
        starts[1:] |= found.memory[1:] != found.memory[:-1]
    return np.cumsum(starts) - 1


def _between_borders(life: Rows, begin: Rows, end: Rows) -> tuple[Rows, Rows]:
    """The first stretch between borders that each access touches, and how many."""
    lives, borders = np.append(life, life), np.append(begin, end)
    order = order_of(lives, borders)
    new = np.ones(len(order), np.bool_)
    lives, borders = lives[order], borders[order]
    new[1:] = (lives[1:] != lives[:-1]) | (borders[1:] != borders[:-1])
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new) - 1
    first = number[: len(life)]
    return first, number[len(life) :] - first


def _distinct(source: Rows, target: Rows, evidence: Codes) -> EdgeList:
    """Each edge once, with the best of its evidences."""
    order = order_of(source, target, evidence)
    source, target, evidence = source[order], target[order], evidence[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
    return EdgeList(EdgeKind.DATA, source[new], target[new], evidence[new])
