"""Nodes for the further communications that one kernel carries.

They stand beside the kernel's node: they wait for what it waits for, and whatever waits for it
waits for them. None waits for another, as no message of a batch waits for the others. They have
the kernel's interval too; the attribute `same_kernel` says that it is one.
"""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import asdict

from chakra_et.columns import NO_ROW, UNTIMED, Rows, count_up, no_rows
from chakra_et.linker.activities import Activities, with_joins
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.time.own_time import OwnTime
from chakra_et.linker.waits.joins import MANY


class Graph(msgspec.Struct):
    """All that becomes nodes, in the order of these, and their edges and times.

    `further` are rows of further communications, `kernels` the rows of the kernels of these.
    """

    table: Activities
    order: Rows
    edges: list[EdgeList]
    own: OwnTime
    further: Rows
    kernels: Rows


def with_further_nodes(
    table: Activities, order: Rows, edges: list[EdgeList], own: OwnTime, kernels: Rows
) -> Graph:
    """The graph with one more activity for each of `kernels` (ascending rows, with repetitions).

    The new rows are the last ones of the table, in the order of `kernels`. Behind them come joins:
    where many nodes would wait for many messages of one kernel, each, they wait for a join.
    """
    if len(kernels) == 0:
        return Graph(table, order, edges, own, no_rows(), no_rows())
    edges, joined = _with_joins(len(table) + len(kernels), kernels, edges)
    rows = np.arange(len(table), len(table) + len(kernels))
    lists = ("host_order", "beside", "rests")
    same = {name: getattr(table, name) for name in lists}
    longer = {
        name: np.append(column, column[kernels])
        for name, column in asdict(table).items()
        if name not in ("host", *lists)
    }
    host = np.append(table.host, np.full(len(kernels), NO_ROW, np.int64))
    place = np.empty(len(table), np.int64)
    place[order] = np.arange(len(table))
    ended, nothing = own.end_ns[joined], np.zeros(len(joined), np.int64)
    joined_at = {"begin_ns": ended, "end_ns": ended, "release_ns": nothing + UNTIMED}
    beside = Activities(host=host, **longer, **same)
    joins = len(beside) + np.arange(len(joined))
    return Graph(
        table=with_joins(beside, ended, table.lane[joined]),
        order=np.insert(order, place[np.append(kernels, joined)] + 1, np.append(rows, joins)),
        edges=[_beside(found, kernels, rows) for found in edges],
        own=OwnTime(
            **{
                name: np.concatenate((column, column[kernels], joined_at.get(name, nothing)))
                for name, column in asdict(own).items()
            }
        ),
        further=rows,
        kernels=kernels,
    )


def _with_joins(first: int, kernels: Rows, edges: list[EdgeList]) -> tuple[list[EdgeList], Rows]:
    """The edges, with joins behind kernels where these save many; `first` is the first one's row.

    The second value is the kernel of each join.
    """
    carriers, counts = np.unique(kernels, return_counts=True)
    messages = np.ones(first, np.int64)
    messages[carriers] += counts
    waiting = np.zeros(first, np.int64)
    for found in edges:
        np.add.at(waiting, found.source, messages[found.target])
    joined = carriers[(messages[carriers] > MANY) & (waiting[carriers] > MANY)]
    instead = np.arange(first)
    instead[joined] = first + np.arange(len(joined))
    through = [EdgeList(e.kind, instead[e.source], e.target, e.evidence) for e in edges]
    return [*through, EdgeList.by(Evidence.STREAM_ORDER, joined, instead[joined])], joined


def _beside(found: EdgeList, kernels: Rows, rows: Rows) -> EdgeList:
    """The edges, and again those from and to kernels, with their further in their place."""
    edge, which = _touching(found.source, kernels)
    source = np.append(found.source, rows[which])
    target = np.append(found.target, found.target[edge])
    evidence = np.append(found.evidence, found.evidence[edge])
    edge, which = _touching(target, kernels)
    return EdgeList(
        found.kind,
        np.append(source, source[edge]),
        np.append(target, rows[which]),
        np.append(evidence, evidence[edge]),
    )


def _touching(ends: Rows, kernels: Rows) -> tuple[Rows, Rows]:
    """The places in `ends` at which each kernel stands, and the kernel's place for each."""
    order = np.argsort(ends, kind="stable")
    left, right = (np.searchsorted(ends[order], kernels, side) for side in ("left", "right"))
    count = right - left
    which = np.repeat(np.arange(len(kernels)), count)
    within = count_up(count)
    return order[np.repeat(left, count) + within], which
