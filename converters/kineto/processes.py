"""Profiles of several processes that were merged into one file, taken apart again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count

import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto.categories import Role
from chakra_et.converters.kineto.device_trace import DeviceTrace
from chakra_et.converters.kineto.owners import Owners, find_owners


def process_ids(device: DeviceTrace) -> list[int]:
    """The processes whose operations a profile holds."""
    return [int(pid) for pid in np.unique(device.pid[device.role == Role.OP])]


def split_processes(device: DeviceTrace) -> dict[int, DeviceTrace]:
    """The profile of each process, in order of rank.

    Ids are per process, so nothing may be joined across them. Records that are no rows count for
    the first process. A process that tells no rank gets the first one that is free.
    """
    pids = process_ids(device)
    if len(pids) < 2:
        return dict.fromkeys(pids or [0], device)
    owners = find_owners(device, pids)
    ranks = _ranks(pids, owners)
    parts = {pid: _part(device, owners.pid == pid, first=pid == pids[0]) for pid in pids}
    if owners.unsure:
        numbers = ", ".join(map(str, sorted(set(owners.unsure))))
        parts[pids[0]].warnings.append(
            f"it is not sure whose the devices {numbers} of the merged profile are; each went to a "
            "process without a device, by correlation ids and in order of rank, or to several in "
            "turn"
        )
    return {
        pid: replace(parts[pid], rank=ranks[pid])
        for pid in sorted(pids, key=lambda pid: ranks[pid])
    }


def _ranks(pids: list[int], owners: Owners) -> dict[int, int]:
    """The rank of each process: the one that it tells, else the next that is free."""
    taken = set(owners.ranks.values())
    free = (rank for rank in count() if rank not in taken)
    return {pid: owners.ranks[pid] if pid in owners.ranks else next(free) for pid in pids}


def _part(device: DeviceTrace, mine: npt.NDArray[np.bool_], *, first: bool) -> DeviceTrace:
    part = device.select(mine, "")
    part.warnings = list(device.warnings) if first else []
    categories = device.categories.in_order
    codes, counts = np.unique(part.category, return_counts=True)
    own = Counter({(categories[c], "X"): int(n) for c, n in zip(codes, counts, strict=True)})
    if not first:
        return replace(part, counts=dict(own), left_out=Counter())
    codes, counts = np.unique(device.category[~mine], return_counts=True)
    others = Counter({(categories[c], "X"): int(n) for c, n in zip(codes, counts, strict=True)})
    rest = Counter(device.counts)
    rest.subtract(others)
    return replace(part, counts=dict(+rest), left_out=Counter(device.left_out))
