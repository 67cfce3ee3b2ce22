"""Profiles of several processes that were merged into one file, taken apart again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import count

import numpy as np

from chakra_et.codes import codes, distinct
from chakra_et.columns import Mask, no_rows
from chakra_et.converters.kineto.account import totals_of
from chakra_et.converters.kineto.owners import Owners, find_owners
from chakra_et.converters.kineto.process_marks import Marks, ranks_in_labels
from chakra_et.recording import DeviceTrace, Role


def process_ids(device: DeviceTrace) -> list[int]:
    """The processes that a profile tells, else those whose operations it holds."""
    if len(device.process):
        return [int(pid) for pid in distinct(device.process)]
    return [int(pid) for pid in distinct(device.pid[device.role == Role.OP])]


def split_processes(device: DeviceTrace) -> dict[int, DeviceTrace]:
    """The profile of each process, in order of rank.

    Ids are per process, so nothing may be joined across them. Records that are no rows count for
    the first process. A process that tells no rank gets the first one that is free.
    """
    pids = process_ids(device)
    if len(pids) < 2:
        device.warnings += _several_under_one_number(device)
        return dict.fromkeys(pids or [0], device)
    owners = _told_owners(device, pids) if len(device.process) else find_owners(device, pids)
    ranks = _ranks(pids, owners)
    parts = {pid: _part(device, owners.pid == pid, first=pid == pids[0]) for pid in pids}
    if owners.unsure:
        numbers = ", ".join(map(str, sorted(set(owners.unsure))))
        parts[pids[0]].warnings.append(
            f"the processes of devices {numbers} of the merged profile are uncertain; each went to "
            "the process with fewest devices, by correlation ids and in order of rank, or to "
            "several in turn"
        )
    return {
        pid: replace(parts[pid], rank=ranks[pid])
        for pid in sorted(pids, key=lambda pid: ranks[pid])
    }


def _several_under_one_number(device: DeviceTrace) -> list[str]:
    """What to say of a single process that is several: labels of two ranks, or ids given again."""
    ranks = sorted({rank for texts in device.labels.values() for rank in ranks_in_labels(texts)})
    calls = np.flatnonzero((device.role == Role.CALL) & (device.correlation > 0))
    ids = np.unique(codes(device.correlation[calls], device.name[calls]), return_counts=True)[1]
    again = int(np.count_nonzero(ids > 1))
    if len(ranks) < 2 and 2 * again <= len(ids):
        return []
    why = f"labels name ranks {', '.join(map(str, ranks))}" if len(ranks) > 1 else ""
    why = why or f"{again} of {len(ids)} correlation ids of its calls were given more than once"
    return [
        f"profiles of several processes seem to be merged under one process number: {why}; they "
        "were converted as one, so that launches may be of another process. Convert each by itself"
    ]


def _told_owners(device: DeviceTrace, pids: list[int]) -> Owners:
    """The process of each row as the recorder tells it, and the ranks that labels tell."""
    return Owners(device.process, Marks(device, no_rows(), pids).ranks())


def _ranks(pids: list[int], owners: Owners) -> dict[int, int]:
    """The rank of each process: the one that it tells, else the next that is free."""
    taken = set(owners.ranks.values())
    free = (rank for rank in count() if rank not in taken)
    return {pid: owners.ranks[pid] if pid in owners.ranks else next(free) for pid in pids}


def _part(device: DeviceTrace, mine: Mask, *, first: bool) -> DeviceTrace:
    part = device.select(mine, "")
    part.warnings = list(device.warnings) if first else []
    if first:
        counts = Counter(device.counts)
        counts.subtract(_spans(device, ~mine))
        left_out = Counter(device.left_out)
    else:
        counts, left_out = _spans(device, mine), Counter()
    counts = +counts
    return replace(part, counts=counts, totals=totals_of(counts), left_out=left_out)


def _spans(device: DeviceTrace, rows: Mask) -> Counter[tuple[str, str]]:
    """How many of some records there are, by category and phase."""
    categories = device.categories.in_order
    codes, counts = np.unique(device.category[rows], return_counts=True)
    return Counter({(categories[c], "X"): int(n) for c, n in zip(codes, counts, strict=True)})
