"""Which nodes of two runs stand for each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chakra_et.columns import Rows
from chakra_et.linker.joining.alignment import align
from chakra_et.model import Trace
from chakra_et.predict.places import same_places
from chakra_et.replay.columns import columns_of
from chakra_et.tables.grouping import codes


@dataclass(frozen=True)
class Matched:
    """One rank on both sides: `row[r]` is the node of `right` that stands for node r of `left`.

    It is -1 where none does.
    """

    rank: int
    left: Trace
    right: Trace
    row: Rows


def matched(rank: int, left: Trace, right: Trace) -> Matched:
    """The nodes of one rank: by id and name if all shared ids agree, else by name and place."""
    if len(left.nodes) == len(right.nodes) and bool((left.nodes.id == right.nodes.id).all()):
        # Ids of damaged files may occur twice: then the order of rows decides.
        by_id = np.arange(len(left.nodes))
    else:
        by_id = right.nodes.rows_of(left.nodes.id)
    shared = by_id >= 0
    named, others = left.nodes.name[shared], right.nodes.name[by_id[shared]]
    fewer = min(len(left.nodes), len(right.nodes))
    once = len(np.unique(by_id[shared])) == np.count_nonzero(shared)
    if once and 2 * np.count_nonzero(shared) >= fewer and bool((named == others).all()):
        return Matched(rank, left, right, by_id)
    row = same_places(columns_of(left), columns_of(right)).row
    _match_rest(left, right, row)
    return Matched(rank, left, right, row)


def _match_rest(left: Trace, right: Trace, row: Rows) -> None:
    """Match by name, in the order of rows, what has no place in common: it may have moved."""
    mine = np.flatnonzero(row < 0)
    theirs = np.flatnonzero(~np.isin(np.arange(len(right.nodes)), row))
    code, _ = codes([*left.nodes.name[mine].tolist(), *right.nodes.name[theirs].tolist()])
    at, other = align(code[: len(mine)], code[len(mine) :])
    row[mine[at]] = theirs[other]
