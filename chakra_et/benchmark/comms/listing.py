"""The calls of every rank: what was recorded, in the order in which it was asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from msgspec.structs import replace

from chakra_et.benchmark.comms.awaited import awaited
from chakra_et.benchmark.comms.call import DELAY, RECV, SEND, Call, Group, Skipped, width
from chakra_et.benchmark.comms.details import Details, default_dtype, details_of
from chakra_et.columns import Rows
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.model import TraceSet
from chakra_et.validators.sequences import RECORDED_TIME, WORLD, group_key, issue_order
from chakra_et.validators.view import ABSENT, RunView, TraceView

_SIDES: Final = {NodeType.COMM_SEND: (SEND, "comm_dst"), NodeType.COMM_RECV: (RECV, "comm_src")}
_NUMBERS: Final = ("comm_type", "comm_size", "comm_dst", "comm_src", "comm_tag")


@dataclass
class Listing:
    """The calls of a run by rank, and what cannot be run."""

    world_size: int
    calls: dict[int, list[Call]] = field(default_factory=dict)
    skipped: dict[int, list[Skipped]] = field(default_factory=dict)

    @property
    def groups(self) -> list[Group]:
        """Every group of the run's collectives, in one order for all ranks."""
        every = [call for calls in self.calls.values() for call in calls]
        found = {call.group for call in every if not call.is_message and call.kind != DELAY}
        return sorted(found, key=lambda group: (group.ranks, group.name))


def list_calls(traces: TraceSet) -> Listing:
    """The collectives and messages of all ranks."""
    run = RunView({rank: TraceView(trace, rank) for rank, trace in traces.items()})
    listing = Listing(traces.world_size)
    for rank, view in run.views.items():
        names = dict.fromkeys(view.texts("pg_name")[view.communication].tolist())
        groups = {name: _group(run, view, name, traces.world_size) for name in names}
        rows, listing.skipped[rank] = _runnable(view, groups)
        listing.calls[rank] = _calls(view, issue_order(view, rows), groups)
    every = [rank for calls in listing.calls.values() for c in calls for rank in c.group.ranks]
    listing.world_size = max([listing.world_size, *(rank + 1 for rank in every)])
    return listing


def _runnable(view: TraceView, groups: Mapping[str, Group | None]) -> tuple[Rows, list[Skipped]]:
    """Rows that tell enough to be run, and why others do not."""
    rows = view.communication
    unknown = [name for name, group in groups.items() if group is None]
    nobody = np.isin(view.texts("pg_name")[rows].astype(str), unknown)
    kinds, types = view.nodes.type[rows], view.integers("comm_type")[rows]
    is_coll = kinds == NodeType.COMM_COLL
    send = (kinds == NodeType.COMM_SEND) & (view.integers("comm_dst")[rows] == ABSENT)
    recv = (kinds == NodeType.COMM_RECV) & (view.integers("comm_src")[rows] == ABSENT)
    unsized = view.integers("comm_size")[rows] == ABSENT
    barrier = is_coll & (types == CollectiveType.BARRIER)
    reasons = {
        "it takes its recorded time alone": view.present(RECORDED_TIME)[rows],
        "its group is unknown": is_coll & view.present("pg_candidates")[rows],
        "the members of its group are unknown": is_coll & nobody,
        "its type is unknown": is_coll & ~np.isin(types, list(CollectiveType)),
        "the other rank of the message is unknown": send | recv,
        "its size is unknown": unsized & ~barrier,
    }
    left = np.ones(len(rows), np.bool_)
    found = []
    for reason, mask in reasons.items():
        mine = rows[mask & left]
        left &= ~mask
        if len(mine):
            took = int(view.nodes.duration_ns[mine].sum())
            found.append(Skipped(reason, len(mine), took))
    return rows[left], found


def _calls(view: TraceView, rows: Rows, groups: Mapping[str, Group | None]) -> list[Call]:
    names = view.texts("pg_name")[rows].tolist()
    columns = (view.integers(name)[rows].tolist() for name in _NUMBERS)
    waits = awaited(view.trace, rows)
    starts = view.nodes.start_ns[rows]
    first = int(starts.min()) if len(rows) and view.timed[rows].all() else None
    places: Counter[tuple[object, ...]] = Counter()
    calls = []
    for number, (row, name, *told) in enumerate(zip(rows.tolist(), names, *columns, strict=True)):
        group = groups[name] or Group("", ())
        call = _call(view, row, group, dict(zip(_NUMBERS, told, strict=True)))
        key = (call.group, call.kind, call.tag) if call.is_message else (call.group,)
        start = None if first is None else int(starts[number]) - first
        calls.append(replace(call, place=places[key], after=waits[number], start_ns=start))
        places[key] += 1
    return calls


def _group(run: RunView, view: TraceView, name: str, world_size: int) -> Group | None:
    """The group of a name, by one name and the same members on all ranks; None if nobody tells."""
    known, ranks = group_key(run, view, name)
    given = view.group_of.get(name)
    size = 0 if given is None else given.size
    if ranks or not size or size == world_size:
        return Group(known, ranks or tuple(range(world_size)))
    # Which ranks a group has that is not told, and not the only one, nobody knows.
    return Group("", tuple(range(size))) if name in WORLD or len(view.groups) == 1 else None


def _call(view: TraceView, row: int, group: Group, told: dict[str, int]) -> Call:
    nodes = view.nodes
    kind, took = NodeType(int(nodes.type[row])), int(nodes.duration_ns[row])
    if kind is NodeType.COMM_COLL:
        name, peer, tag = CollectiveType(told["comm_type"]).name, None, 0
    else:
        name, side = _SIDES[kind]
        peer, tag = told[side], max(told["comm_tag"], 0)
        ends = (view.rank or 0, peer)
        group = Group("", ends if name == SEND else ends[::-1])
    details = details_of(view.trace, row, name)
    dtype, tensors = _elements(max(told["comm_size"], 0), details)
    root = -1 if details.root is None else details.root
    return Call(
        node=int(nodes.id[row]),
        kind=name,
        group=group,
        place=0,
        dtype=dtype,
        dtype_told=dtype == details.dtype,
        tensors=tensors,
        coalesced=details.coalesced and name != CollectiveType.BARRIER.name,
        sends=tuple(details.sends),
        takes=tuple(details.takes),
        root=group.ranks[root] if 0 <= root < len(group.ranks) else None,
        peer=peer,
        tag=tag,
        is_async=details.is_async,
        recorded_ns=took if took or view.timed[row] else None,
    )


def _elements(size_bytes: int, told: Details) -> tuple[str, tuple[int, ...]]:
    """The type of the elements, and how many each tensor has; the size counts first."""
    dtype = told.dtype or default_dtype(size_bytes)
    if sum(told.tensors) * width(dtype) == size_bytes:
        return dtype, tuple(told.tensors) or (0,)
    if size_bytes % width(dtype):
        dtype = default_dtype(size_bytes)
    return dtype, (size_bytes // width(dtype),)
