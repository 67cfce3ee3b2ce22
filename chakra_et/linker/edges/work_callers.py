"""Callers of device work without a recorded launch: by arrows, and by the ids of its record."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from chakra_et.columns import NO_ROW, Rows
from chakra_et.linker.activities import Activities
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.tallies import JoinTally
from chakra_et.recording import DeviceTrace, Kind, Role
from chakra_et.recording.same import lookup

_EARLY_ERA: Final = 0.9
"""Share of device work whose External id is its correlation id, as up to torch 2.2."""


class Attribution(msgspec.Struct):
    """How device work without a call found its operation, and what External ids say of the rest."""

    by_id: int
    by_arrow: int
    orphans: int
    agreeing: int
    compared: int


def take_arrows(table: Activities, source: Rows, target: Rows) -> None:
    """Give device work the operations in which arrows to it begin."""
    table.caller[target] = source
    table.called_by[target] = Evidence.CALL_ARROW


def attribute(table: Activities, device: DeviceTrace) -> Attribution:
    """Give device work without a call the operation that its ids name, where they can be believed.

    In old profiles the External id of device work repeats its correlation id and names nothing.
    """
    work = np.flatnonzero(table.work)
    record = table.record[work]
    external, correlation = device.external_id[record], device.correlation[record]
    told = external > 0
    early = np.count_nonzero(told & (external == correlation))
    if early > _EARLY_ERA * np.count_nonzero(told):
        external = np.zeros_like(external)
    else:
        external = np.where(external == correlation, 0, external)
    ops = np.flatnonzero((table.role == Role.OP) & (table.record != NO_ROW))
    by_external = _rows_with(table, device.external_id, ops, external)
    launched = table.launch[work] != NO_ROW
    named, orphans = by_external.copy(), np.flatnonzero(~launched)
    if len(orphans):
        by_function = _rows_with(table, device.rf_id, ops, device.rf_id[record[orphans]])
        named[orphans] = np.where(by_function != NO_ROW, by_function, named[orphans])
    # Work cannot begin before the operation that it is said to be of.
    possible = (named != NO_ROW) & (table.start_ns[named] <= table.start_ns[work])
    use = possible & ~launched
    table.caller[work[use]] = named[use]
    table.called_by[work[use]] = Evidence.CALL_ID
    compared = launched & (by_external != NO_ROW)
    around = _operation_around(table, device, table.launch[work[compared]])
    agreeing = np.count_nonzero(around == by_external[compared])
    return Attribution(
        int(np.count_nonzero(use)),
        int(np.count_nonzero(~launched & (table.called_by[work] == Evidence.CALL_ARROW))),
        int(np.count_nonzero(~launched)),
        int(agreeing),
        int(np.count_nonzero(compared)),
    )


def _operation_around(table: Activities, device: DeviceTrace, calls: Rows) -> Rows:
    """The innermost operation around each call that is no annotation, or `NO_ROW`.

    The profiler gives device work the id of that operation; annotations have ids of their own.
    """
    around = table.nested_in[calls]
    while True:
        named = device.kind[table.record[around]] == Kind.ANNOTATION
        other = (around != NO_ROW) & (named | (table.role[around] != Role.OP))
        if not other.any():
            return around
        around[other] = table.nested_in[around[other]]


def _rows_with(table: Activities, ids: Rows, ops: Rows, wanted: Rows) -> Rows:
    """For each wanted id the operation that has it; `NO_ROW` where none does or several do."""
    own = ids[table.record[ops]]
    ops, own = ops[own > 0], own[own > 0]
    places = np.arange(len(own))
    alone = np.bincount(lookup(own, places, own), minlength=len(own)) == 1
    return lookup(own[alone], ops[alone], wanted)


def attribution_warnings(found: Attribution) -> list[str]:
    """What External ids say against launches."""
    if found.agreeing == found.compared:
        return []
    return [
        f"External ids of {found.compared - found.agreeing} of {found.compared} device events "
        "name another operation than the one around their launch; the launch was used"
    ]


def attribution_joins(found: Attribution) -> list[JoinTally]:
    """How device work without a call found its operation, and whether External ids agree."""
    what = "work without a launching call to operations"
    by = Evidence.CALL_ID.label
    agreement = "External ids of device events that agree with their launch"
    joins = [
        JoinTally(what, by, found.by_id, found.orphans),
        JoinTally(
            what, Evidence.CALL_ARROW.label, found.by_arrow, found.by_arrow and found.orphans
        ),
        JoinTally(agreement, "External id", found.agreeing, found.compared),
    ]
    return [join for join in joins if join.of]
