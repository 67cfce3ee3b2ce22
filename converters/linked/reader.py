"""Reading linked traces.

Such a file is a host trace with more keys: matched host nodes have a time, and device nodes stand
among them, each a copy of the node that launched it with another name. Nodes were numbered anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto import DeviceTrace, Role
from chakra_et.converters.kineto.device_trace import NO_ID
from chakra_et.converters.kineto.sanity import NO_TIME, quarantine
from chakra_et.converters.kineto.times import nanoseconds
from chakra_et.converters.linked.linked_trace import NONE, LinkedTrace, Rows
from chakra_et.converters.linked.nodes import LinkedColumns, LinkedFlat, LinkedNested
from chakra_et.converters.pytorch import HostTrace
from chakra_et.converters.pytorch.host_trace import NO_CALLER
from chakra_et.converters.pytorch.reader import (
    HEAD_BYTES,
    FlatColumns,
    NestedColumns,
    is_nested,
)
from chakra_et.converters.pytorch.unrecorded import add_unrecorded
from chakra_et.io.memory import collection_paused
from chakra_et.io.records import Layout, Records, missing_array, read_records
from chakra_et.io.source import head
from chakra_et.pool import Pool

HOST_TIMES: Final = ""
"""The category under which times of host nodes stand among the device's records."""
_NESTED: Final = Layout(LinkedNested, "nodes", ("id",), "schema")
_FLAT: Final = Layout(LinkedFlat, "nodes", ("name",), "schema")
_EPOCH_NS: Final = 10**18
"""Times before the year 2001 do not count from the Unix epoch."""
_DIGITS: Final = 19
"""Numbers below 2**63 have no more."""


def read_linked(path: str | Path, *, strict: bool = False) -> LinkedTrace:
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
        raise missing_array(path, _NESTED, "Is this a trace that chakra_trace_link wrote?")
    columns: LinkedColumns[Any] = read.columns
    host = columns.host.finish(Path(path), read.metadata, [], read.repairs)
    return _tie(columns, *_with_sound_callers(host, nested))


def _with_sound_callers(host: HostTrace, nested: bool) -> tuple[HostTrace, list[str]]:
    """The host nodes with callers that the new numbers name, or with none.

    Nodes of layout A keep the old numbers of their callers; `fw_parent` is an old number always.
    """
    host = replace(host, fw_parent=np.zeros_like(host.fw_parent))
    root = int(np.argmin(host.id)) if len(host) else 0
    if not nested and len(host) and host.parent[root] not in (host.id[root], NO_CALLER):
        warning = (
            "the nodes were numbered anew, but not the callers that they name; nesting in time "
            "tells the callers"
        )
        return replace(host, parent=np.full_like(host.parent, NO_CALLER)), [warning]
    return add_unrecorded(host), []


def _tie(columns: LinkedColumns[Any], host: HostTrace, warnings: list[str]) -> LinkedTrace:
    """Host and device part, and the ties between them as rows."""
    host_row = {number: row for row, number in enumerate(host.id.tolist())}
    device = _device(columns, host, host_row)
    # While records may still be set apart, External ids number them.
    place = device.external_id - 1
    device.external_id = np.zeros_like(place)
    own, work = np.flatnonzero(device.role != Role.WORK), device.rows(Role.WORK)
    record = np.full(len(host), NONE, np.int64)
    record[place[own]] = own
    nodes = [columns.work[k] for k in place[work].tolist()]
    launcher = np.full(len(device), NONE, np.int64)
    launcher[work] = [host_row.get(_whole(node.ctrl_deps), NONE) for node in nodes]
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
    if len(device) and device.start_ns.max() < _EPOCH_NS:
        warnings.append("times count from a base that the file does not tell")
    return LinkedTrace(host, device, record, launcher, synced, warnings)


def _synced(
    found: list[tuple[Any, int]],
    work_row: dict[int, int],
    host_row: dict[int, int],
    record: Rows,
    device: DeviceTrace,
) -> Rows:
    """Rows of device and host nodes, int64[2, waits], of the waits that the times allow."""
    named = ((work_row.get(_whole(s), NONE), host_row.get(t, NONE)) for s, t in found)
    rows = dict.fromkeys(pair for pair in named if NONE not in pair)
    pairs = np.array(list(rows), np.int64).reshape(-1, 2).T
    pairs = pairs[:, record[pairs[1]] != NONE]
    ended = device.start_ns[pairs[0]] + device.duration_ns[pairs[0]]
    possible: Rows = pairs[:, ended <= device.start_ns[record[pairs[1]]]]
    return possible


def _whole(value: Any) -> int:
    """An id, or a number that is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else NONE


def _device(columns: LinkedColumns[Any], host: HostTrace, host_row: dict[int, int]) -> DeviceTrace:
    """Times of host nodes, then device nodes, as records of a profile, each with its number."""
    work = columns.work
    timed = {
        host_row[number]: times for number, times in columns.timed.items() if number in host_row
    }
    host_rows = np.array(list(timed), np.int64)
    start = [ts for ts, _ in timed.values()] + [bytes(node.ts) for node in work]
    duration = [dur for _, dur in timed.values()] + [bytes(node.inclusive_dur) for node in work]
    start_ns, duration_ns, told = _times(start, duration)
    if not told.all():
        host.repairs.mend("time that is no number", None, int(np.count_nonzero(~told)))
    count, own = len(start), len(timed)
    categories: Pool[str] = Pool({HOST_TIMES: 0})
    names: Pool[str] = Pool({name: code for code, name in enumerate(host.names)})

    def column(of_host: Any, of_work: Any) -> npt.NDArray[np.int64]:
        values = np.empty(count, np.int64)
        values[:own], values[own:] = of_host, of_work
        return values

    nothing = np.full(count, NO_ID, np.int64)
    categorized = [categories[_category(node)] for node in work]
    device = DeviceTrace(
        path=host.path,
        metadata={},
        base_time_ns=0,
        counts={(HOST_TIMES, "X"): own} | Counter([(_category(node), "X") for node in work]),
        role=column(Role.OP, Role.WORK).astype(np.uint8),
        category=column(0, categorized).astype(np.int32),
        categories=categories,
        name=column(host.name[host_rows], [names[node.name] for node in work]).astype(np.int32),
        names=names,
        pid=column(host.pid or 0, 0),
        tid=column(host.thread[host_rows], 0),
        start_ns=start_ns,
        duration_ns=duration_ns,
        correlation=nothing,
        external_id=column(host_rows + 1, np.arange(1, len(work) + 1)),
        rf_id=np.zeros(count, np.int64),
        sequence=column(host.seq_id[host_rows], -1),
        fwd_thread=column(host.fw_thread[host_rows], 0),
        device=nothing,
        stream=column(NO_ID, [_stream(node.stream) for node in work]),
        context=nothing,
        size_bytes=nothing,
        shapes=np.zeros(count, np.int32),
        shape_texts=Pool({b"": 0}),
        args=[b""] * own + [_args(node) for node in work],
        thread_names={},
        warnings=[],
        # Those of the file are told once, with the host nodes.
        repairs=replace(host.repairs, kinds={}),
    )
    return quarantine(device.select(told, NO_TIME))


def _category(node: Any) -> str:
    return node.cat or "(empty)"


def _stream(value: Any) -> int:
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and len(value) <= _DIGITS else NONE
    number = _whole(value)
    return number if abs(number) < 1 << 63 else NO_ID


def _args(node: Any) -> bytes:
    """What the file says of a device node, in the profiler's words."""
    args = {"stream": node.stream, "Process Group Name": node.pg_name}
    return msgspec.json.encode({key: value for key, value in args.items() if value is not None})


def _times(
    starts: Sequence[bytes], durations: Sequence[bytes]
) -> tuple[Rows, Rows, npt.NDArray[np.bool_]]:
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
