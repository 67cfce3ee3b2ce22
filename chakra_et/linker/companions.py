"""Nodes for the further communications that one kernel carries.

They stand beside the kernel's node: they wait for what it waits for, and whatever waits for it
waits for them. None waits for another, as no message of a batch waits for the others. They have
the kernel's interval too; the attribute `same_kernel` says that it is one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from chakra_et.linker.activities import Activities
from chakra_et.linker.edges.edge_list import EdgeList
from chakra_et.linker.nesting import NONE
from chakra_et.linker.own_time import OwnTime

Rows = npt.NDArray[np.int64]


@dataclass
class Graph:
    """All that becomes nodes, in the order of these, and their edges and times.

    `companions` are rows of further communications, `kernels` the rows of the kernels of these.
    """

    table: Activities
    order: Rows
    edges: list[EdgeList]
    own: OwnTime
    companions: Rows
    kernels: Rows


def with_companions(
    table: Activities, order: Rows, edges: list[EdgeList], own: OwnTime, kernels: Rows
) -> Graph:
    """The graph with one more activity for each of `kernels` (ascending rows, with repetitions).

    The new rows are the last ones of the table, in the order of `kernels`.
    """
    rows = np.arange(len(table), len(table) + len(kernels))
    longer = {
        item.name: np.append(getattr(table, item.name), getattr(table, item.name)[kernels])
        for item in fields(table)
        if item.name not in ("host", "host_order", "beside")
    }
    host = np.append(table.host, np.full(len(kernels), NONE, np.int64))
    place = np.empty(len(table), np.int64)
    place[order] = np.arange(len(table))
    return Graph(
        table=Activities(host=host, host_order=table.host_order, beside=table.beside, **longer),
        order=np.insert(order, place[kernels] + 1, rows),
        edges=[_beside(found, kernels, rows) for found in edges],
        own=OwnTime(
            np.append(own.begin_ns, own.begin_ns[kernels]),
            np.append(own.end_ns, own.end_ns[kernels]),
            np.append(own.lag_ns, own.lag_ns[kernels]),
            np.append(own.return_ns, own.return_ns[kernels]),
            own.unexplained,
        ),
        companions=rows,
        kernels=kernels,
    )


def _beside(found: EdgeList, kernels: Rows, rows: Rows) -> EdgeList:
    """The edges, and again those from and to kernels, with their companions in their place."""
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
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return order[np.repeat(left, count) + within], which
