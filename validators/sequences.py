"""The collectives of each process group, rank by rank, in the order in which they are issued.

What takes its recorded time alone, as no file tells what it is, is left out: nobody waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.definitions import CollectiveType
from chakra_et.validators.view import ABSENT, RunView, TraceView

WORLD: Final = ("", "0")
"""Names under which a node means the group of all ranks."""
RECORDED_TIME: Final = "takes_recorded_time"
"""The attribute of collectives that no other rank takes part in."""
EQUAL_SIZES: Final = (
    CollectiveType.ALL_REDUCE,
    CollectiveType.REDUCE,
    CollectiveType.BROADCAST,
    CollectiveType.REDUCE_SCATTER,
    CollectiveType.REDUCE_SCATTER_BLOCK,
)
"""Collectives to which every rank brings as many bytes; to others it may bring its own number."""


@dataclass(frozen=True)
class Sequence:
    """One rank's collectives of a group in order: rows, types and sizes."""

    view: TraceView
    rank: int
    rows: Rows
    types: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    @property
    def least(self) -> int:
        """How many collectives there are at least: one of unknown type may be another group's."""
        return int(np.count_nonzero(self.types >= 0))

    def strict_sizes(self) -> npt.NDArray[np.int64]:
        """Sizes where all ranks need the same; 0 elsewhere, -1 where the size is not told."""
        told = np.where(self.types < 0, -1, self.sizes)
        return np.where(np.isin(self.types, (*EQUAL_SIZES, -1)), told, 0)


def issue_order(view: TraceView, rows: Rows) -> Rows:
    """Rows in the order in which they were asked for.

    Record-function ids count that, where a backend's threads may begin in another order; else
    starts tell, or ids where starts are not known.
    """
    asked = view.integers("rf_id")[rows]
    if (asked > 0).all():
        return rows[np.argsort(asked, kind="stable")]
    keys = view.nodes.id[rows]
    if view.timed[rows].all() and len(rows):
        return rows[np.lexsort((keys, view.nodes.start_ns[rows]))]
    return rows[np.argsort(keys, kind="stable")]


def group_key(run: RunView, view: TraceView, name: str) -> tuple[str, tuple[int, ...]]:
    """What a group is known by over all ranks: its name and, where they are told, its members.

    Where a rank's account of them is cut, that of another rank counts.
    """
    group = view.group_of.get(name)
    ranks = () if group is None else tuple(sorted(set(group.ranks)))
    if group is not None and len(ranks) < group.size:
        full = (set(v.group_of[name].ranks) for v in run.views.values() if name in v.group_of)
        fuller = (tuple(sorted(o)) for o in full if len(o) == group.size and o >= set(ranks))
        ranks = next(fuller, ranks)
    # A file can tell any size of the world: only as many ranks as a group has are compared.
    size = run.usual_world_size or 0
    if name in WORLD and (not ranks or (len(ranks) == size and ranks == tuple(range(size)))):
        return "", ()
    # A group of all ranks that each calls by an address of its own.
    if not ranks and group is not None and group.size == (size or len(run.views)) > 1:
        return "", ()
    return name, ranks


def sequences(run: RunView) -> dict[tuple[str, tuple[int, ...]], list[Sequence]]:
    """Sequences by group, of the ranks that take part in it."""
    found: dict[tuple[str, tuple[int, ...]], list[Sequence]] = {}
    for rank, view in run.views.items():
        apart = view.present("pg_candidates") | view.present(RECORDED_TIME)
        rows = view.collectives[~apart[view.collectives]]
        names = view.texts("pg_name")[rows].astype(str)
        types, sizes = view.integers("comm_type"), view.integers("comm_size")
        by_key: dict[tuple[str, tuple[int, ...]], list[Rows]] = {}
        for name in np.unique(names).tolist():
            by_key.setdefault(group_key(run, view, name), []).append(rows[names == name])
        for key, parts in by_key.items():
            ordered = issue_order(view, np.concatenate(parts))
            size = np.where(sizes[ordered] == ABSENT, -1, sizes[ordered])
            kind = np.where(types[ordered] == ABSENT, -1, types[ordered])
            found.setdefault(key, []).append(Sequence(view, rank, ordered, kind, size))
    return found


def group_label(key: tuple[str, tuple[int, ...]]) -> str:
    """A group for people."""
    name, ranks = key
    if not name:
        return "the group of all ranks"
    return f"group {name!r} of ranks {list(ranks)}" if ranks else f"group {name!r}"
