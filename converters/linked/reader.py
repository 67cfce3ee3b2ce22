"""Reading linked traces.

Such a file is a host trace with more keys: matched host nodes have a time, and device nodes stand
among them, each a copy of the node that launched it with another name. Nodes were numbered anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.converters.kineto.sanity import NO_TIME, quarantine
from chakra_et.converters.linked.nodes import LinkedColumns, LinkedFlat, LinkedNested, whole
from chakra_et.converters.linked.records import as_records
from chakra_et.converters.linked.timed import EPOCH_NS, NO_BASE
from chakra_et.converters.pytorch.host_columns import FlatColumns, NestedColumns
from chakra_et.converters.pytorch.meaning import read_meaning
from chakra_et.converters.pytorch.reader import HEAD_BYTES, is_nested
from chakra_et.converters.pytorch.unrecorded import add_unrecorded
from chakra_et.converters.times import nanoseconds
from chakra_et.io.memory import collection_paused
from chakra_et.io.records import Layout, Records, missing_array, read_records
from chakra_et.io.source import head
from chakra_et.recording import DeviceTrace, HostTrace, Recording, Role, Stated
from chakra_et.recording.host_trace import NO_CALLER

_NESTED: Final = Layout(LinkedNested, "nodes", ("id",), "schema")
_FLAT: Final = Layout(LinkedFlat, "nodes", ("name",), "schema")


def read_linked(path: str | Path, *, strict: bool = False) -> Recording:
    """Read a linked trace of any layout, plain, compressed or packed.

    Damage is mended and counted as in host traces. Raises FormatError, naming file and place, when
    the file is no linked trace, and for any damage if `strict`.
    """
    read: Records[LinkedColumns[LinkedNested]] | Records[LinkedColumns[LinkedFlat]]
    nested = is_nested(head(path, HEAD_BYTES))
    with collection_paused():
        if nested:
            read = read_records(
                path, _NESTED, lambda r: LinkedColumns(NestedColumns(r), r), strict=strict
            )
        else:
            read = read_records(
                path, _FLAT, lambda r: LinkedColumns(FlatColumns(r), r), strict=strict
            )
    if not read.found:
        raise missing_array(path, _NESTED, "Check that chakra_trace_link wrote this trace.")
    columns: LinkedColumns[Any] = read.columns
    host = read_meaning(columns.host.finish(Path(path), read.metadata, [], read.repairs))
    return _tie(columns, *_with_sound_callers(host, nested))


def _with_sound_callers(host: HostTrace, nested: bool) -> tuple[HostTrace, list[str]]:
    """The host nodes with callers that the new numbers name, or with none.

    Nodes of layout A keep the old numbers of their callers; `fw_parent` is an old number always.
    """
    host = replace(host, fw_parent=np.zeros_like(host.fw_parent))
    root = int(np.argmin(host.id)) if len(host) else 0
    if not nested and len(host) and host.parent[root] not in (host.id[root], NO_CALLER):
        warning = (
            "the nodes were renumbered, but not the callers that they name; nesting in time "
            "tells the callers"
        )
        return replace(host, parent=np.full_like(host.parent, NO_CALLER)), [warning]
    return add_unrecorded(host), []


def _tie(columns: LinkedColumns[Any], host: HostTrace, warnings: list[str]) -> Recording:
    """Host and device part, and the ties between them as rows."""
    host_row = {number: row for row, number in enumerate(host.id.tolist())}
    device = _device(columns, host, host_row)
    # While records may still be set apart, External ids number them.
    place = device.external_id - 1
    device.external_id = np.zeros_like(place)
    own, work = np.flatnonzero(device.role != Role.WORK), device.rows(Role.WORK)
    record = np.full(len(host), NO_ROW, np.int64)
    record[place[own]] = own
    nodes = [columns.work[k] for k in place[work].tolist()]
    launcher = np.full(len(device), NO_ROW, np.int64)
    launcher[work] = [host_row.get(whole(node.ctrl_deps), NO_ROW) for node in nodes]
    work_row = dict(zip([node.id for node in nodes], work.tolist(), strict=True))
    synced = _synced(columns.synced, work_row, host_row, record, device)
    if columns.handed_over:
        warnings.append(
            f"{columns.handed_over} inter_thread_dep were left out: what a thread waited for is "
            "told by the times, as in every conversion"
        )
    wrong = len(columns.synced) - synced.shape[1]
    if wrong:
        warnings.append(
            f"{wrong} sync_dep were left out: they name no device node that had ended when the "
            "node began, or one that is named already"
        )
    if len(device) and device.start_ns.max() < EPOCH_NS:
        warnings.append(NO_BASE)
    return Recording(host, device, Stated(record, launcher, synced), warnings)


def _synced(
    found: list[tuple[Any, int]],
    work_row: dict[int, int],
    host_row: dict[int, int],
    record: Rows,
    device: DeviceTrace,
) -> Rows:
    """Rows of device and host nodes, int64[2, waits], of the waits that the times allow."""
    named = ((work_row.get(whole(s), NO_ROW), host_row.get(t, NO_ROW)) for s, t in found)
    rows = dict.fromkeys(pair for pair in named if NO_ROW not in pair)
    pairs = np.array(list(rows), np.int64).reshape(-1, 2).T
    pairs = pairs[:, record[pairs[1]] != NO_ROW]
    ended = device.start_ns[pairs[0]] + device.duration_ns[pairs[0]]
    possible: Rows = pairs[:, ended <= device.start_ns[record[pairs[1]]]]
    return possible


def _device(columns: LinkedColumns[Any], host: HostTrace, host_row: dict[int, int]) -> DeviceTrace:
    """Times of host nodes, then device nodes, as records of a profile, each with its number."""
    work = columns.work
    timed = {
        host_row[number]: times for number, times in columns.timed.items() if number in host_row
    }
    start = [ts for ts, _ in timed.values()] + [bytes(node.ts) for node in work]
    duration = [dur for _, dur in timed.values()] + [bytes(node.inclusive_dur) for node in work]
    start_ns, duration_ns, told = _times(start, duration)
    if not told.all():
        host.repairs.mend("time that is not a number", None, int(np.count_nonzero(~told)))
    rows = np.array(list(timed), np.int64)
    device = as_records(host, rows, work, start_ns, duration_ns)
    return quarantine(device.select(told, NO_TIME))


def _times(starts: Sequence[bytes], durations: Sequence[bytes]) -> tuple[Rows, Rows, Mask]:
    """Starts and durations in nanoseconds, and which of them the file tells."""
    try:
        return nanoseconds(starts), nanoseconds(durations), np.ones(len(starts), np.bool_)
    except ValueError:
        known = {text: _time(text) for text in {*starts, *durations}}
    told = np.array(
        [None not in (known[s], known[d]) for s, d in zip(starts, durations, strict=True)], np.bool_
    )
    columns = [np.array([known[t] or 0 for t in texts], np.int64) for texts in (starts, durations)]
    return columns[0], columns[1], told


def _time(text: bytes) -> int | None:
    try:
        return int(nanoseconds([text])[0])
    except ValueError:
        return None
