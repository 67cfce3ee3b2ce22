"""Profiles of several processes that were merged into one file, taken apart again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto.categories import Role
from chakra_et.converters.kineto.device_trace import DeviceTrace

Rows = npt.NDArray[np.int64]


def process_ids(device: DeviceTrace) -> list[int]:
    """The processes whose operations a profile holds."""
    return [int(pid) for pid in np.unique(device.pid[device.role == Role.OP])]


def split_processes(device: DeviceTrace) -> dict[int, DeviceTrace]:
    """The profile of each process. Ids are per process, so nothing may be joined across them.

    Device rows carry the number of a device, not of a process: they belong to the process that
    launched most of their work, going by correlation ids and times. Records that are no rows
    count for the first process.
    """
    pids = process_ids(device)
    if len(pids) < 2:
        return dict.fromkeys(pids or [0], device)
    owner = np.full(len(device), pids[0], np.int64)
    on_host = (device.role == Role.OP) | (device.role == Role.CALL)
    own = on_host & np.isin(device.pid, pids)
    owner[own] = device.pid[own]
    for place in np.unique(device.pid[~own]).tolist():
        rows = np.flatnonzero(~own & (device.pid == place))
        owner[rows] = place if place in pids else _owner(device, rows, pids)
    return {pid: _part(device, owner, pid, first=pid == pids[0]) for pid in pids}


def _owner(device: DeviceTrace, rows: Rows, pids: list[int]) -> int:
    """The process with most calls whose ids these rows have, and that came just before them."""
    best = (-1, 0, pids[0])
    for pid in pids:
        calls = np.flatnonzero((device.role == Role.CALL) & (device.pid == pid))
        ids, first = np.unique(device.correlation[calls], return_index=True)
        if len(ids) == 0:
            continue
        place = np.minimum(np.searchsorted(ids, device.correlation[rows]), len(ids) - 1)
        found = ids[place] == device.correlation[rows]
        delay = device.start_ns[rows] - device.start_ns[calls[first[place]]]
        good = found & (delay >= 0)
        score = (int(np.count_nonzero(good)), -int(delay[good].sum()), pid)
        best = max(best, score)
    return best[2]


def _part(device: DeviceTrace, owner: Rows, pid: int, *, first: bool) -> DeviceTrace:
    part = device.select(owner == pid, "")
    categories = device.categories.in_order
    codes, counts = np.unique(part.category, return_counts=True)
    own = Counter({(categories[c], "X"): int(n) for c, n in zip(codes, counts, strict=True)})
    if not first:
        return replace(part, counts=dict(own), left_out=Counter())
    codes, counts = np.unique(device.category[owner != pid], return_counts=True)
    others = Counter({(categories[c], "X"): int(n) for c, n in zip(codes, counts, strict=True)})
    rest = Counter(device.counts)
    rest.subtract(others)
    return replace(part, counts=dict(+rest), left_out=Counter(device.left_out))
