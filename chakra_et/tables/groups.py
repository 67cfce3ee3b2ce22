"""Process groups: what each one communicates."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chakra_et.model import Trace, TraceSet
from chakra_et.tables.collectives import call_table
from chakra_et.tables.grouping import Keys, codes
from chakra_et.tables.table import Table, texts


def group_table(traces: Mapping[int, Trace]) -> Table:
    """Calls, bytes and times by process group; messages between two ranks are of no group."""
    traces = traces if isinstance(traces, TraceSet) else TraceSet(traces)
    calls = call_table(traces)
    told = {group.name: group for group in traces.groups}
    code, names = codes(calls["group"].tolist())
    keys = Keys.of(code)
    sizes = np.ma.filled(calls["message_bytes"], 0).astype(np.int64)
    took = np.ma.filled(calls["transfer_ns"], 0).astype(np.int64)
    with np.errstate(invalid="ignore"):
        share = keys.sum(calls["exposed_ns"]) / keys.sum(calls["member_ns"])
    columns = {
        "group": texts(names),
        "description": texts([told[n].description if n in told else "" for n in names]),
        "ranks": texts([list(told[n].ranks) if n in told else [] for n in names]),
        "calls": keys.count(),
        "message_bytes": keys.sum(sizes),
        "transfer_ns": keys.sum(took),
        "exposed_share": share,
    }
    return Table("groups", columns).by("transfer_ns")
