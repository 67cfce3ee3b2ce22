"""Joining by the order of operations on each thread, where the two files share no ids."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.codes import among, distinct, distinct_rows, order_of
from chakra_et.columns import NO_ROW, Rows
from chakra_et.linker.joining.alignment import align
from chakra_et.linker.joining.iterations import LONGER, Iterations, Pairs, find_iterations
from chakra_et.linker.joining.nesting import ties
from chakra_et.patterns import lazy_pattern
from chakra_et.recording import DeviceTrace, HostTrace, Role

Threads = list[tuple[Rows, Rows]]
"""Rows of a host thread and of the profiled thread that resembles it, each in order."""

_WHOLE: Final = 0.9
"""Share of the operations of a part that the other file has to know by name."""
_NUMBERS: Final = lazy_pattern(rb"\d+")


def by_order(
    host: HostTrace, device: DeviceTrace, candidates: Rows, host_name: Rows, record_name: Rows
) -> tuple[Rows, list[str]]:
    """The profile's row of each host node, or `NO_ROW`, and what a person should know of it.

    If one file holds one iteration of many that the other one has, it is joined with one of these.
    """
    host_threads = [
        rows[np.argsort(host.id[rows], kind="stable")]
        for thread in distinct(host.thread[candidates])
        for rows in [candidates[host.thread[candidates] == thread]]
    ]
    pairs = _pair_threads(host_threads, _threads(device), host_name, record_name)
    pairs, warnings = _one_iteration(host, device, pairs, host_name, record_name)
    record = np.full(len(host), NO_ROW, np.int64)
    for mine, theirs in pairs:
        left, right = align(host_name[mine], record_name[theirs])
        record[mine[left]] = theirs[right]
    return record, warnings


def _threads(device: DeviceTrace) -> list[Rows]:
    """The operations of each profiled thread, in the order in which they began."""
    ops = device.rows(Role.OP)
    threads = []
    of_threads = distinct_rows(device.pid[ops], device.tid[ops])
    for pid, tid in zip(*(column.tolist() for column in of_threads), strict=True):
        rows = ops[(device.pid[ops] == pid) & (device.tid[ops] == tid)]
        threads.append(rows[order_of(device.start_ns[rows], ties(device, rows))])
    return threads


def _pair_threads(
    host_threads: list[Rows], device_threads: list[Rows], host_name: Rows, record_name: Rows
) -> Threads:
    """Pair threads, those that share most names first."""
    shared = []
    for i, mine in enumerate(host_threads):
        names, counts = np.unique(host_name[mine], return_counts=True)
        for j, theirs in enumerate(device_threads):
            others, other_counts = np.unique(record_name[theirs], return_counts=True)
            _, a, b = np.intersect1d(names, others, return_indices=True)
            shared.append((int(np.minimum(counts[a], other_counts[b]).sum()), i, j))
    shared.sort(key=lambda item: (-item[0], item[1], item[2]))
    pairs = []
    free, other_free = set(range(len(host_threads))), set(range(len(device_threads)))
    for count, i, j in shared:
        if count and i in free and j in other_free:
            pairs.append((host_threads[i], device_threads[j]))
            free.remove(i)
            other_free.remove(j)
    return pairs


def _one_iteration(
    host: HostTrace, device: DeviceTrace, pairs: Threads, host_name: Rows, record_name: Rows
) -> tuple[Threads, list[str]]:
    """The part of the longer file in which the whole of the shorter one stands; else both whole.

    The first pair of threads, which shares most names, tells: the other threads follow in time, or
    in the numbers of host nodes.
    """
    if not pairs:
        return pairs, []
    mine, theirs = pairs[0]
    left = mine[among(host_name[mine], record_name[theirs])]
    right = theirs[among(record_name[theirs], host_name[mine])]
    in_profile = len(right) >= LONGER * len(left) and len(left) >= _WHOLE * len(mine)
    in_host = len(left) >= LONGER * len(right) and len(right) >= _WHOLE * len(theirs)
    if not (in_profile or in_host):
        return pairs, []
    short, long = (left, right) if in_profile else (right, left)
    names = (host_name, record_name) if in_profile else (record_name, host_name)

    def to_rows(places: Pairs) -> Pairs:
        a, b = short[places[0]], long[places[1]]
        return (a, b) if in_profile else (b, a)

    agreeing = {
        "input shapes": lambda places: _same_shapes(host, device, *to_rows(places)),
        "process groups": lambda places: _same_groups(host, device, *to_rows(places)),
        "ids": lambda places: _same_ids(host, device, *to_rows(places)),
    }
    found = find_iterations(names[0][short], names[1][long], agreeing)
    if found is None:
        return pairs, []
    place, follows = found.places[found.chosen], _follows(found, long)
    if in_profile:
        pairs = _within(pairs, 1, device.start_ns, long[place[0]], follows)
    else:
        pairs = _within(pairs, 0, host.id, long[place[0]], follows)
    of = ("host trace", "profile") if in_profile else ("profile", "host trace")
    return pairs, _told(found, *of)


def _follows(found: Iterations, long: Rows) -> int | None:
    """The first row behind the chosen place, if there is one."""
    end = found.places[found.chosen][1]
    return int(long[end]) if end < len(long) else None


def _within(
    pairs: Threads,
    side: int,
    begun: npt.NDArray[np.int64 | np.uint64],
    first: int,
    last: int | None,
) -> Threads:
    """The pairs of threads with what began in between on one side."""
    kept = []
    for pair in pairs:
        rows = pair[side]
        inside = begun[rows] >= begun[first]
        if last is not None:
            inside &= begun[rows] < begun[last]
        kept.append((pair[0], rows[inside]) if side else (rows[inside], pair[1]))
    return kept


def _told(found: Iterations, short: str, long: str) -> list[str]:
    count, place = len(found.places), found.chosen + 1
    if count == 1:
        return [f"the {short} holds a part of what the {long} holds; it was joined with that part"]
    if found.alike == 1:
        return [
            f"the {long} holds {count} parts like the {short}; it was joined with part number "
            f"{place}, which {found.by} favour"
        ]
    return [
        f"the {long} holds {count} parts like the {short}, and {found.alike} of them fit as well; "
        f"it was joined with part number {place}, the first of these"
    ]


def _same_shapes(host: HostTrace, device: DeviceTrace, mine: Rows, theirs: Rows) -> int:
    """How many pairs have the same sizes of inputs, brackets aside, and any at all."""
    own = [_sizes(shapes) for _, shapes, _ in host.texts.in_order]
    others = [_sizes(text) for text in device.shape_texts.in_order]
    codes = zip(host.inputs[mine].tolist(), device.shapes[theirs].tolist(), strict=True)
    return sum(own[a] == others[b] != b"" for a, b in codes)


def _sizes(text: bytes) -> bytes:
    return b",".join(_NUMBERS.findall(text))


def _same_groups(host: HostTrace, device: DeviceTrace, mine: Rows, theirs: Rows) -> int:
    """How many pairs tell the same process group."""
    groups = host.attributes.get("pg_name")
    own = {} if groups is None else dict(zip(groups.rows, groups.values, strict=True))
    same = 0
    for a, b in zip(mine.tolist(), theirs.tolist(), strict=True):
        told = device.collectives.get(b)
        same += told is not None and told.group is not None and str(own.get(a)) == told.group
    return same


def _same_ids(host: HostTrace, device: DeviceTrace, mine: Rows, theirs: Rows) -> int:
    """How many pairs have the same sequence number, or External id and record-function id."""
    sequence = host.seq_id[mine]
    same = (sequence >= 0) & (sequence == device.sequence[theirs])
    number = host.rf_id[mine]
    same |= (number > 0) & (number == device.external_id[theirs])
    return int(np.count_nonzero(same))
