"""Operators by self and total time, by name and by type of node."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from chakra_et.model import Trace
from chakra_et.model.nodes import type_label
from chakra_et.tables.grouping import codes
from chakra_et.tables.places import Places
from chakra_et.tables.table import Table, texts
from chakra_et.times import OperatorTime, operator_times

GAP: Final = "(between operations)"
"""What host threads did while no operation was open: mostly Python's own time."""
_STEP: Final = re.compile(r"ProfilerStep#\d+")


def operator_table(traces: Mapping[int, Trace]) -> Table:
    """Times by name over all ranks: `torch.profiler`'s `key_averages()`.

    Of `operator_times`, which says what each time is. Steps of the profiler count as one name.
    """
    sums: dict[tuple[str, bool], list[int]] = {}
    for trace in traces.values():
        for item in operator_times(trace):
            entry = sums.setdefault((_name(item), item.on_host), [0] * 5)
            told = item.calls, item.self_ns, item.wait_ns, item.total_ns, item.timed
            for place, value in enumerate(told):
                entry[place] += value
    numbers = np.array(list(sums.values()), np.int64).reshape(-1, 5)
    calls, own, wait, total, timed = numbers.T
    host = np.array([on_host for _, on_host in sums], np.bool_)
    everyone = np.where(host, own[host].sum(), own[~host].sum())
    columns = {
        "name": texts([name for name, _ in sums]),
        "on": np.where(host, "host", "device").astype(object),
        "calls": calls,
        "self_ns": own,
        "wait_ns": wait,
        "total_ns": total,
        "mean_ns": total / np.maximum(timed, 1),
        "self_share": own / np.maximum(everyone, 1),
    }
    note = "self_share is of all self time on the host, or off it (devices and communication)"
    return Table("operators", columns, note).by("self_ns")


def _name(item: OperatorTime) -> str:
    return GAP if item.name is None else _STEP.sub("ProfilerStep*", item.name)


def type_table(traces: Mapping[int, Trace]) -> Table:
    """Nodes by type, on the host and off it, with their own time."""
    keys: list[tuple[str, str]] = []
    counts: list[int] = []
    took: list[int] = []
    for trace in traces.values():
        places = Places(trace)
        code = trace.nodes.type.astype(np.int64) * 2 + places.on_host
        own_ns = np.where(places.carried, 0, trace.nodes.self_ns)
        for number in np.unique(code).tolist():
            chosen = code == number
            keys.append((type_label(number // 2), "host" if number % 2 else "device"))
            counts.append(int(np.count_nonzero(chosen)))
            took.append(int(own_ns[chosen].sum()))
    code, distinct = codes(keys)
    count, own = np.zeros(len(distinct), np.int64), np.zeros(len(distinct), np.int64)
    np.add.at(count, code, np.array(counts, np.int64))
    np.add.at(own, code, np.array(took, np.int64))
    columns = {
        "type": texts([kind for kind, _ in distinct]),
        "on": texts([where for _, where in distinct]),
        "nodes": count,
        "self_ns": own,
    }
    return Table("types", columns).by("self_ns")
