"""Times of host nodes, and device nodes among these, as the records of a device trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from chakra_et.columns import Rows
from chakra_et.converters.kineto.categories import DEVICE_CATEGORIES
from chakra_et.converters.kineto.kinds import set_kinds
from chakra_et.converters.linked.nodes import whole
from chakra_et.pool import Pool
from chakra_et.recording import NO_ID, DeviceTrace, Facts, HostTrace, Role, Sparse
from chakra_et.recording.numbers import text

HOST_TIMES: Final = ""
"""The category under which times of host nodes stand among the device's records."""
_UNTOLD: Final = frozenset({"thread", "device"})
"""Attributes for which such a file has nothing to say."""
_DIGITS: Final = 19
"""Numbers below 2**63 have no more."""


def as_records(
    host: HostTrace, host_rows: Rows, work: Sequence[Any], start_ns: Rows, duration_ns: Rows
) -> DeviceTrace:
    """A record for each of the host nodes `host_rows`, and behind these one for each device node.

    `External id` holds the row of the host node, or the place in `work`, from 1 on. Only device
    nodes are records of their own, which count.
    """
    count, own = len(start_ns), len(host_rows)
    categories: Pool[str] = Pool({HOST_TIMES: 0})
    names: Pool[str] = Pool({name: code for code, name in enumerate(host.names)})

    def column(of_host: Any, of_work: Any, dtype: Any = np.int64) -> Any:
        values = np.empty(count, dtype)
        values[:own], values[own:] = of_host, of_work
        return values

    categorized = [categories[_category(node)] for node in work]
    device = DeviceTrace.of(
        host.path,
        count,
        # Those of the file are told once, with the host nodes.
        replace(host.repairs, kinds={}),
        totals=dict(sorted(Counter(map(_category, work)).items())),
        work_categories=DEVICE_CATEGORIES,
        silent_on=_UNTOLD,
        role=column(Role.OP, Role.WORK, np.uint8),
        category=column(0, categorized, np.int32),
        categories=categories,
        name=column(host.name[host_rows], [names[node.name] for node in work], np.int32),
        names=names,
        pid=column(host.pid or 0, 0),
        tid=column(host.thread[host_rows], 0),
        start_ns=start_ns,
        duration_ns=duration_ns,
        external_id=column(host_rows + 1, np.arange(1, len(work) + 1)),
        sequence=column(host.seq_id[host_rows], -1),
        fwd_thread=column(host.fw_thread[host_rows], 0),
        stream=column(NO_ID, [_stream(node.stream) for node in work]),
        args=[""] * own + [_args(node) for node in work],
        collectives=Sparse(
            (own + place, Facts(group=text(node.pg_name), sources=["kernel args"]))
            for place, node in enumerate(work)
            if node.pg_name is not None
        ),
    )
    set_kinds(device)
    return device


def _category(node: Any) -> str:
    return node.cat or "(empty)"


def _stream(value: Any) -> int:
    if isinstance(value, str):
        value = int(value) if value.isdecimal() and len(value) <= _DIGITS else NO_ID
    number = whole(value)
    return number if abs(number) < 1 << 63 else NO_ID


def _args(node: Any) -> str:
    """What the file says of a device node, as text that is carried."""
    args = {"stream": node.stream, "Process Group Name": node.pg_name}
    told = {key: value for key, value in args.items() if value is not None}
    return msgspec.json.encode(told).decode()
