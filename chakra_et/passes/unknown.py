"""Collectives of which no file tells all that a simulator has to know."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import CollectiveType, Kind
from chakra_et.model import Trace, TraceSet
from chakra_et.passes.base import Change, PassResult, run_pass
from chakra_et.passes.edit import annotate, copied, drop_attribute, set_attribute
from chakra_et.validators.sequences import EQUAL_SIZES, RECORDED_TIME, Sequence, sequences
from chakra_et.validators.view import RunView, TraceView

_REPLAYED: Final = CollectiveType.BROADCAST
"""ASTRA-sim replays it, beside what it computes, and looks for no other rank."""
_NO_TYPE: Final = "a collective of unknown type"
_CANDIDATES: Final = "pg_candidates"


@run_pass(
    "settle-unknown",
    "No collective without type, size or group: what no rank tells takes its recorded time.",
    ensures="ET205 ET206 ET409",
)
def settle_unknown(traces: TraceSet) -> PassResult:
    """Take types and sizes from other ranks, and replay what no rank tells.

    Where all ranks need the same type or size, what one tells holds for all. What remains unknown
    becomes a broadcast of no bytes, which ASTRA-sim gives its recorded time.
    """
    changed = {rank: copied(trace) for rank, trace in traces.items()}
    changes = [change for group in _groups(changed) for change in _told_by_others(group)]
    changes += [c for view in _views(changed).values() for c in _replayed(view, _apart(view))]
    for group in _groups(changed):
        for s, rows in zip(group, _unsized(group), strict=True):
            changes += _replayed(s.view, rows)
    return PassResult(TraceSet(changed) if changes else traces, changes)


def _views(traces: dict[int, Trace]) -> dict[int, TraceView]:
    return {rank: TraceView(trace, rank) for rank, trace in traces.items()}


def _groups(traces: dict[int, Trace]) -> list[list[Sequence]]:
    return list(sequences(RunView(_views(traces))).values())


def _alike(group: list[Sequence]) -> bool:
    """Whether the collectives of all ranks can be held against each other one by one."""
    return len({len(s.rows) for s in group}) == 1 and len(group) > 1


def _told_by_others(group: list[Sequence]) -> list[Change]:
    """Set types and sizes that another rank tells, where they have to be equal."""
    if not _alike(group):
        return []
    types = np.stack([s.types for s in group])
    known = types.max(0)
    agreed = ((types == known) | (types < 0)).all(0)
    sizes = np.stack([s.sizes for s in group])
    equal = agreed & np.isin(known, EQUAL_SIZES)
    changes = []
    largest = sizes.max(0)
    for s in group:
        no_type, no_size = _lacks(s, "comm_type"), _lacks(s, "comm_size")
        changes += _given(s, "comm_type", known, agreed & no_type & (known >= 0))
        changes += _given(s, "comm_size", largest, equal & no_size & (largest >= 0))
    return changes


def _lacks(s: Sequence, name: str) -> Mask:
    """Which of a rank's collectives do not have an attribute."""
    lacks: Mask = ~s.view.present(name)[s.rows]
    return lacks


def _given(s: Sequence, name: str, values: Rows, lacking: Mask) -> list[Change]:
    order = np.argsort(s.rows[lacking])
    rows, new = s.rows[lacking][order], values[lacking][order]
    if len(rows) == 0:
        return []
    notes = [f"{name} {value} as other ranks tell it" for value in new.tolist()]
    set_attribute(s.view.nodes.attributes, name, Kind.INT64, rows, new)
    annotate(s.view.nodes.attributes, rows, notes)
    return [_change(f"{name} taken from other ranks", s.view, rows, notes)]


def _apart(view: TraceView) -> Rows:
    """Collectives without type, and those that may be of several groups."""
    rows: Rows = view.collectives
    return rows[~view.present("comm_type")[rows] | view.present(_CANDIDATES)[rows]]


def _unsized(group: list[Sequence]) -> list[Rows]:
    """By rank, the collectives whose size it, or another rank that takes part, does not tell."""
    lacking = [_lacks(s, "comm_size") & (s.types != CollectiveType.BARRIER) for s in group]
    if _alike(group):
        lacking = [np.any(lacking, axis=0)] * len(group)
    return [s.rows[mask] for s, mask in zip(group, lacking, strict=True)]


def _replayed(view: TraceView, rows: Rows) -> list[Change]:
    """Make collectives take their recorded time."""
    rows = np.sort(rows)
    if len(rows) == 0:
        return []
    types = view.integers("comm_type")[rows].tolist()
    known = CollectiveType._value2member_map_
    what = np.where(view.present(_CANDIDATES)[rows], "group", "size").tolist()
    why = [
        f"{CollectiveType(t).name} of unknown {lacking}" if t in known else _NO_TYPE
        for t, lacking in zip(types, what, strict=True)
    ]
    table = view.nodes.attributes
    set_attribute(table, "comm_type", Kind.INT64, rows, np.full(len(rows), int(_REPLAYED)))
    set_attribute(table, "comm_size", Kind.INT64, rows, np.zeros(len(rows), np.int64))
    set_attribute(table, RECORDED_TIME, Kind.STRING, rows, why)
    for name in ("in_msg_nelems", _CANDIDATES):
        drop_attribute(table, name, rows)
    notes = [f"{text}: takes its recorded time" for text in why]
    annotate(table, rows, notes)
    return [_change("collectives that take their recorded time", view, rows, notes)]


def _change(what: str, view: TraceView, rows: Rows, notes: list[str]) -> Change:
    ids = view.nodes.id[rows].tolist()
    return Change(what, len(rows), view.rank, list(zip(ids, notes, strict=True)))
