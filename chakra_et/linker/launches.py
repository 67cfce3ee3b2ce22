"""Which call launched which device work, and whose it is where no call is in the profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from chakra_et.codes import codes
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.nesting import NONE
from chakra_et.recording import DeviceTrace, Kind, Role

if TYPE_CHECKING:
    from chakra_et.linker.activities import Activities

Rows = npt.NDArray[np.int64]

_EARLY_ERA: Final = 0.9
"""Share of device work whose External id is its correlation id, as up to torch 2.2."""


@dataclass
class Attribution:
    """How device work without a call found its operation, and what External ids say of the rest."""

    by_id: int
    by_arrow: int
    orphans: int
    agreeing: int
    compared: int


def find_launches(table: Activities, device: DeviceTrace) -> Rows:
    """Device work to the runtime or driver call with its correlation id, or `NONE`.

    Of several calls with one id (a driver call inside a runtime call, an id that is used again)
    the last one counts that began before the work; if all began after it, the first.
    One call may launch much work: a graph.
    """
    launch = np.full(len(table), NONE, np.int64)
    calls = np.flatnonzero(table.role == Role.CALL)
    work = np.flatnonzero(table.work)
    ids, wanted = (device.correlation[table.record[rows]] for rows in (calls, work))
    calls, ids = calls[ids > 0], ids[ids > 0]
    if len(calls) == 0 or len(work) == 0:
        return launch
    code = codes(np.concatenate((ids, wanted)))
    rank = codes(np.concatenate((table.start_ns[calls], table.start_ns[work])))
    # Ids and times are numbered densely, so that a pair of them fits into one integer.
    key = code * (int(rank.max()) + 1) + rank
    mine, theirs = key[: len(calls)], key[len(calls) :]
    order = np.argsort(mine, kind="stable")
    behind = np.searchsorted(mine[order], theirs, "right")
    last, first = np.maximum(behind - 1, 0), np.minimum(behind, len(calls) - 1)
    place = np.where((behind > 0) & (ids[order[last]] == wanted), last, first)
    launch[work] = np.where(ids[order[place]] == wanted, calls[order[place]], NONE)
    return launch


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
    ops = np.flatnonzero((table.role == Role.OP) & (table.record != NONE))
    by_external = _rows_with(table, device.external_id, ops, external)
    by_function = _rows_with(table, device.rf_id, ops, device.rf_id[record])
    named = np.where(by_function != NONE, by_function, by_external)
    launched = table.launch[work] != NONE
    # Work cannot begin before the operation that it is said to be of.
    possible = (named != NONE) & (table.start_ns[named] <= table.start_ns[work])
    use = possible & ~launched
    table.caller[work[use]] = named[use]
    table.called_by[work[use]] = Evidence.CALL_ID
    compared = launched & (by_external != NONE)
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
    """The innermost operation around each call that is no annotation, or `NONE`.

    The profiler gives device work the id of that operation; annotations have ids of their own.
    """
    around = table.nested_in[calls]
    while True:
        named = device.kind[table.record[around]] == Kind.ANNOTATION
        other = (around != NONE) & (named | (table.role[around] != Role.OP))
        if not other.any():
            return around
        around[other] = table.nested_in[around[other]]


def _rows_with(table: Activities, ids: Rows, ops: Rows, wanted: Rows) -> Rows:
    """For each wanted id the operation that has it; `NONE` where none does or several do."""
    own = ids[table.record[ops]]
    ops, own = ops[own > 0], own[own > 0]
    if len(ops) == 0:
        return np.full(len(wanted), NONE, np.int64)
    order = np.argsort(own, kind="stable")
    ordered = own[order]
    left = np.minimum(np.searchsorted(ordered, wanted, "left"), len(ordered) - 1)
    count = np.searchsorted(ordered, wanted, "right") - np.searchsorted(ordered, wanted, "left")
    return np.where((count == 1) & (wanted > 0), ops[order[left]], NONE)


def launch_warnings(table: Activities, device: DeviceTrace, found: Attribution) -> list[str]:
    """What the ties between calls and device work say about the recording."""
    warnings = []
    work = np.flatnonzero(table.work)
    stated = table.called_by[work] == Evidence.CALL_FILE
    orphans = work[(table.launch[work] == NONE) & ~stated]
    if len(orphans):
        ids = device.correlation[table.record[orphans]]
        _, counts = np.unique(ids[ids > 0], return_counts=True)
        shared = int(counts[counts > 1].sum())
        graphs = f"; {shared} of them share correlation ids, as kernels of graphs do" * bool(shared)
        warnings.append(
            f"{len(orphans)} device events have no launching call in the profile (launched before "
            f"it began, or not recorded); they are kept, in the order of their streams{graphs}"
        )
    calls = np.flatnonzero(table.role == Role.CALL)
    launching = np.zeros(len(table), np.bool_)
    launching[table.launch[work[table.launch[work] != NONE]]] = True
    names = device.name[table.record[calls]]
    launchers = np.isin(names, np.unique(names[launching[calls]]))
    idle = int(np.count_nonzero(launchers & ~launching[calls]))
    if idle:
        percent = 100 * idle / int(np.count_nonzero(launchers))
        warnings.append(
            f"{idle} calls ({percent:.0f} %) of kinds that launch device work have no device event"
        )
    if found.compared and found.agreeing < found.compared:
        warnings.append(
            f"External ids of {found.compared - found.agreeing} of {found.compared} device events "
            "name another operation than the one around their launch; the launch was believed"
        )
    return warnings
