"""Times of host nodes, and device nodes among these, as the records of a profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto import DeviceTrace, Role
from chakra_et.converters.kineto.device_trace import NO_ID
from chakra_et.converters.linked.linked_trace import NONE, Rows
from chakra_et.converters.linked.nodes import whole
from chakra_et.converters.pytorch import HostTrace
from chakra_et.pool import Pool

HOST_TIMES: Final = ""
"""The category under which times of host nodes stand among the device's records."""
_DIGITS: Final = 19
"""Numbers below 2**63 have no more."""


def as_records(
    host: HostTrace, host_rows: Rows, work: Sequence[Any], start_ns: Rows, duration_ns: Rows
) -> DeviceTrace:
    """A record for each of the host nodes `host_rows`, and behind these one for each device node.

    `External id` holds the row of the host node, or the place in `work`, from 1 on.
    """
    count, own = len(start_ns), len(host_rows)
    categories: Pool[str] = Pool({HOST_TIMES: 0})
    names: Pool[str] = Pool({name: code for code, name in enumerate(host.names)})

    def column(of_host: Any, of_work: Any) -> npt.NDArray[np.int64]:
        values = np.empty(count, np.int64)
        values[:own], values[own:] = of_host, of_work
        return values

    nothing = np.full(count, NO_ID, np.int64)
    categorized = [categories[_category(node)] for node in work]
    return DeviceTrace(
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


def _category(node: Any) -> str:
    return node.cat or "(empty)"


def _stream(value: Any) -> int:
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and len(value) <= _DIGITS else NONE
    number = whole(value)
    return number if abs(number) < 1 << 63 else NO_ID


def _args(node: Any) -> bytes:
    """What the file says of a device node, in the profiler's words."""
    args = {"stream": node.stream, "Process Group Name": node.pg_name}
    return msgspec.json.encode({key: value for key, value in args.items() if value is not None})
