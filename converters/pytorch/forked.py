"""Nodes that forked processes wrote into the file of their parent, as workers of data loaders do.

A process that is forked while the observer runs goes on with a copy of it: with the same file, with
what was not written yet, and with the same next ids. So ids occur several times, for other
operations of other processes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.codes import among, codes
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.converters.pytorch.unrecorded import add_unrecorded
from chakra_et.recording import DeviceTrace, HostTrace, Role
from chakra_et.recording.same import agreeing, common_names, lookup
from chakra_et.shown import several

FORKED: Final = "node that a forked process wrote"
ROOTS: Final = ("|process]", "|thread]")
_OF_ITSELF: Final = 1000
"""What an operation that is kept counts for, in votes of neighbours."""
_NO_PLACE: Final = -1
_NO_LEAST: Final = (-1, -1)
_NO_LIMIT: Final = (1 << 64, 1 << 64)
_AROUND: Final = 4
"""So many neighbours on each side tell which process wrote a part of the file."""
_DENSE: Final = 8
"""With fewer numbers than so many for each id, ids are counted rather than sorted."""
_ADVICE: Final = (
    "start workers before the observer, or with multiprocessing_context='spawn', to keep the file "
    "to one process"
)


def has_forked(host: HostTrace) -> bool:
    """Whether several processes wrote into the file: ids of operations that occur several times."""
    operations = host.id[~_is_root(host)]
    if len(operations) and operations.max() < _DENSE * len(operations):
        return bool(np.bincount(operations.astype(np.int64)).max() > 1)
    operations = np.sort(operations)
    return bool((operations[1:] == operations[:-1]).any())


def own_nodes(host: HostTrace, device: DeviceTrace | None) -> HostTrace:
    """The nodes of one process, where forked ones wrote into its file, by the profile if given."""
    if not has_forked(host):
        return host
    profiled = np.zeros(len(host), np.bool_)
    other = np.zeros(len(host), np.bool_)
    if device is not None:
        ops = device.rows(Role.OP)
        ops = ops[device.rf_id[ops] > 0]
        record = lookup(device.rf_id[ops], ops, host.rf_id)
        record[host.rf_id <= 0] = NO_ROW
        profiled = agreeing(record, *common_names(host, device), device)
        other = (record != NO_ROW) & ~profiled
    return without_forked(host, profiled, other)


def _is_root(host: HostTrace) -> Mask:
    names = np.array([name.endswith(ROOTS) for name in host.names], np.bool_)
    return names[host.name] if len(host) else np.zeros(0, np.bool_)


def without_forked(host: HostTrace, profiled: Mask, other: Mask) -> HostTrace:
    """The nodes of the process that the file is of; the others are counted as left out.

    `profiled` are nodes whose record-function id has their name in the profile of that process;
    `other` are those whose id has another name there, so that another process wrote them. Without
    a profile both are false everywhere; then the nodes that make one tree with the end of the file
    are kept, as the process itself ends it.
    """
    votes = _smoothed(profiled.astype(np.int64) - other)
    keep = _best_copies(host, profiled, votes)
    keep = _with_tree(host, keep, other | (profiled & ~keep) | (votes < 0))
    lost = int(np.count_nonzero(~keep))
    host.repairs.leave_out(FORKED, None, lost)
    kept = host.select(keep)
    sure = "" if profiled.any() else " as far as ids tell without a profile"
    kept.warnings.append(
        f"{several(lost, 'node was', 'nodes were')} "
        f"left out{sure}: forked processes, such as workers of a data loader, "
        f"wrote them into this file; {_ADVICE}"
    )
    return add_unrecorded(kept)


def _smoothed(votes: Rows) -> Rows:
    """Votes of each node and its neighbours in the file, which are mostly of one process."""
    total = np.cumsum(np.concatenate((np.zeros(_AROUND + 1, np.int64), votes)))
    total = np.append(total, np.full(_AROUND, total[-1]))
    width = 2 * _AROUND + 1
    summed: Rows = total[width:] - total[:-width]
    return summed


def _best_copies(host: HostTrace, profiled: Mask, votes: Rows) -> Mask:
    """Profiled nodes, each id once: both ids count on, and neighbours are profiled, too."""
    rows = np.flatnonzero(profiled)
    keep = np.zeros(len(host), np.bool_)
    # Of one operation, a chain takes one copy: the larger id comes first, and ids ascend.
    order = rows[np.lexsort((-host.id[rows].astype(np.int64), host.rf_id[rows]))]
    keep[order[_heaviest_rising(codes(host.id[order]), _OF_ITSELF + votes[order])]] = True
    # Threads may take their two ids in another order than each other.
    ids, rf_ids = set(host.id[keep].tolist()), set(host.rf_id[keep].tolist())
    for row in rows[np.lexsort((rows, votes[rows]))][::-1].tolist():
        if host.id[row] not in ids and host.rf_id[row] not in rf_ids:
            keep[row] = True
            ids.add(host.id[row])
            rf_ids.add(host.rf_id[row])
    return keep


def _heaviest_rising(values: Rows, weights: Rows) -> list[int]:
    """Places of the strictly rising subsequence with the largest sum of weights.

    `values` are small numbers from 0 on; time grows as n log n.
    """
    best = [(0, _NO_PLACE)] * (int(values.max(initial=-1)) + 2)  # a Fenwick tree of prefix maxima
    before = []
    for place, (value, weight) in enumerate(zip(values.tolist(), weights.tolist(), strict=True)):
        found, at = (0, _NO_PLACE), value
        while at > 0:
            found, at = max(found, best[at]), at & (at - 1)
        before.append(found[1])
        found, at = (found[0] + weight, place), value + 1
        while at < len(best):
            best[at], at = max(best[at], found), at + (at & -at)
    chain = [max(best)[1]]
    while chain[-1] != _NO_PLACE:
        chain.append(before[chain[-1]])
    return chain[-2::-1]


def _with_tree(host: HostTrace, keep: Mask, elsewhere: Mask) -> Mask:
    """What is kept, and what makes one tree with it, from the end of the file on.

    Each thread writes its nodes as they end. Read backward, a node is called by one of those that
    are open, the innermost of which is the last one read, and its ids lie between those of its
    caller and those of what the same caller called later. Nodes `elsewhere`, among those of another
    process, do not count.
    """
    root = _is_root(host)
    ids, parents, threads = host.id.tolist(), host.parent.tolist(), host.thread.tolist()
    begun = list(zip(ids, host.rf_id.tolist(), strict=True))
    chosen, taken = keep.tolist(), {ids[row] for row in np.flatnonzero(keep).tolist()}
    # Callers that are still open when the recording ends are not in the file.
    top = {ids[row] for row in np.flatnonzero(root).tolist()} | (set(parents) - set(ids))
    own: dict[int, tuple[int, int]] = {}
    below: dict[int, tuple[int, int]] = {}
    open_now: dict[int, list[int]] = {}
    for row in np.flatnonzero(~root)[::-1].tolist():
        number, parent = ids[row], parents[row]
        stack = open_now.setdefault(threads[row], [])
        after, limit = own.get(parent, _NO_LEAST), below.get(parent, _NO_LIMIT)
        if not chosen[row]:
            called = (parent in top or parent in stack) and _between(after, begun[row], limit)
            if elsewhere[row] or not called or number in taken:
                continue
            chosen[row] = True
            taken.add(number)
        while stack and stack[-1] != parent:
            stack.pop()
        stack += [number] if stack else [parent, number]
        own[number], below[number] = _told(begun[row], after), limit
        below[parent] = _told(begun[row], limit)
    result = np.array(chosen, np.bool_)
    return result | _roots_of(host, result, np.flatnonzero(root))


def _told(begun: tuple[int, int], known: tuple[int, int]) -> tuple[int, int]:
    """The ids of a node; in place of those that it has not, what is known without it."""
    return begun[0] or known[0], begun[1] or known[1]


def _between(after: tuple[int, int], begun: tuple[int, int], limit: tuple[int, int]) -> bool:
    """Whether a node began after its caller and before the next one, by each of its ids."""
    return all(a < b < c for a, b, c in zip(after, begun, limit, strict=True) if b)


def _roots_of(host: HostTrace, keep: Mask, roots: Rows) -> Mask:
    """The roots, each once, under which something is kept, and the root of the process."""
    _, first = np.unique(host.id[roots], return_index=True)
    roots = roots[first]
    process = host.parent[roots] == host.id[roots]
    wanted = among(host.id[roots], host.parent[keep]) | process
    mask = np.zeros(len(host), np.bool_)
    mask[roots[wanted]] = True
    return mask
