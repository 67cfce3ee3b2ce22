"""Broadcasts for a simulator that has none: an all-gather brings each rank as many bytes."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.definitions import CollectiveType, Kind
from chakra_et.model import TraceSet
from chakra_et.passes.base import Change, PassResult, run_pass
from chakra_et.passes.edit import annotate, copied, set_attribute
from chakra_et.validators.sequences import Sequence, sequences
from chakra_et.validators.view import RunView, TraceView

_STAND_IN: Final = CollectiveType.ALL_GATHER


@run_pass("lower-broadcasts", "Broadcasts that are simulated, where all ranks are there.")
def lower_broadcasts(traces: TraceSet) -> PassResult:
    """Put an all-gather in the place of each broadcast that all ranks of its group take part in.

    Of n ranks each brings one of n - 1 parts, so that every rank receives as many bytes as of the
    broadcast, and a ring of either takes n - 1 hops. Nobody has to know the root, which recordings
    do not tell. Where a rank is missing or ranks disagree, a broadcast stays what it is.
    """
    changed = {rank: copied(trace) for rank, trace in traces.items()}
    run = RunView({rank: TraceView(trace, rank) for rank, trace in changed.items()})
    changes: list[Change] = []
    for (_, ranks), group in sequences(run).items():
        members = ranks or tuple(range(traces.world_size))
        if {s.rank for s in group} == set(members) and len(members) > 1:
            changes += _lowered(group, len(members))
    return PassResult(TraceSet(changed) if changes else traces, changes)


def _lowered(group: list[Sequence], count: int) -> list[Change]:
    if len({len(s.rows) for s in group}) != 1:
        return []
    types, sizes = np.stack([s.types for s in group]), np.stack([s.sizes for s in group])
    alike = (types == CollectiveType.BROADCAST).all(0) & (sizes == sizes[0]).all(0)
    found = np.flatnonzero(alike & (sizes[0] >= 0))
    if len(found) == 0:
        return []
    return [_change(s, found, -(-sizes[0][found] // (count - 1))) for s in group]


def _change(s: Sequence, found: Rows, parts: Rows) -> Change:
    order = np.argsort(s.rows[found])
    rows, whole, part = s.rows[found][order], s.sizes[found][order], parts[order]
    table = s.view.nodes.attributes
    notes = [
        f"BROADCAST of {a} bytes as ALL_GATHER of {b} from each rank"
        for a, b in zip(whole.tolist(), part.tolist(), strict=True)
    ]
    set_attribute(table, "comm_type", Kind.INT64, rows, np.full(len(rows), int(_STAND_IN)))
    set_attribute(table, "comm_size", Kind.INT64, rows, part)
    annotate(table, rows, notes)
    ids = s.view.nodes.id[rows].tolist()
    told = list(zip(ids, notes, strict=True))
    return Change("broadcasts made all-gathers", len(rows), s.rank, told)
