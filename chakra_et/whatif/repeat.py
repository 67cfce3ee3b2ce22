"""Ranges of a program that are done more often or less: micro-batches, layers, steps."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.errors import ChakraError
from chakra_et.model import EdgeKind, Trace, TraceSet
from chakra_et.passes.edit import without_nodes
from chakra_et.replay.columns import columns_of
from chakra_et.replay.selectors import select
from chakra_et.tables.places import Places
from chakra_et.times import callers
from chakra_et.whatif.apart import waits_apart
from chakra_et.whatif.copies import Parts, with_copies
from chakra_et.whatif.edit import Change, Edit
from chakra_et.whatif.values import number

_MOST: Final = 10_000


def repeat(text: str, selector: str, value: str) -> Edit:
    """Ranges that a selector names are done N times where one caller called some of them.

    The range in the middle is copied, or taken out; those before and behind it may differ.
    """
    wanted = number(text, value, least=1)
    if wanted != int(wanted) or wanted > _MOST:
        raise ChakraError(
            f"{text}: expected a whole number from 1 to {_MOST}",
            remedy="Write repeat:name=layer=8.",
        )

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        made, nodes, before_ns, after_ns = {}, 0, 0, 0
        for rank, trace in waits_apart(traces).items():
            made[rank], touched = _repeated(trace, text, selector, int(wanted))
            nodes += touched
            before_ns += int(trace.nodes.self_ns.sum())
            after_ns += int(made[rank].nodes.self_ns.sum())
        return TraceSet(made), Change(text, nodes, before_ns, after_ns, "repeated")

    return Edit(text, apply)


def _repeated(trace: Trace, text: str, selector: str, wanted: int) -> tuple[Trace, int]:
    """The trace with each group of ranges done `wanted` times, and how many nodes that concerns."""
    places = Places(trace)
    chosen = np.flatnonzero(select(trace, selector) & places.on_host)
    if not len(chosen):
        raise ChakraError(
            f"{text}: fits no range on a host thread",
            remedy="Name operators or annotations (record_function) around what is repeated.",
        )
    caller = places.caller[chosen]
    part_of = np.full(len(trace.nodes), NO_ROW, np.int64)
    around: list[int] = []
    copies: list[int] = []
    gone = np.zeros(len(trace.nodes), np.bool_)
    for above in np.unique(caller).tolist():
        ranges = chosen[caller == above].tolist()
        middle = (len(ranges) - 1) // 2
        if wanted > len(ranges):
            part_of[_within(trace, places, ranges[middle])] = len(copies)
            around.append(ranges[middle])
            copies.append(wanted - len(ranges))
        for _ in range(len(ranges) - wanted):
            gone[_within(trace, places, ranges.pop((len(ranges) - 1) // 2))] = True
    if gone.any():
        left, touched = _repeated(without_nodes(trace, gone), text, selector, wanted)
        return left, touched + int(gone.sum())
    if not copies:
        return trace, 0
    parts = Parts(part_of, np.array(copies, np.int64), np.array(around, np.int64))
    try:
        changed = with_copies(trace, parts)
    except ChakraError as error:
        raise ChakraError(f"{text}: {error.problem}", remedy=error.remedy) from error
    return changed, len(changed.nodes) - len(trace.nodes)


def _within(trace: Trace, places: Places, around: int) -> Rows:
    """The nodes of a range: on its thread while it was open, and what these began elsewhere."""
    columns = columns_of(trace)
    lane, _ = places.lane
    inside = (lane == lane[around]) & places.on_host
    inside &= (columns.start >= columns.start[around]) & (columns.start < columns.end[around])
    inside[around] = True
    return np.flatnonzero(inside | _begun(trace, places, inside))


def _begun(trace: Trace, places: Places, inside: Mask) -> Mask:
    """Device work that some nodes launched, transfers that they asked for, and what these call."""
    source, target, kind = trace.source_rows(), trace.edges.target, trace.edges.kind
    asked = (kind == EdgeKind.THREAD) & places.communication[target] & ~places.on_host[target]
    begins = asked | (kind == EdgeKind.LAUNCH)
    found = np.zeros(len(trace.nodes), np.bool_)
    found[target[begins & (source >= 0) & inside[np.maximum(source, 0)]]] = True
    launcher = places.launcher
    found |= ~places.on_host & (launcher >= 0) & inside[np.maximum(launcher, 0)]
    caller = callers(trace)
    above = np.where(found | (caller < 0), np.arange(len(found)), caller)
    # Twice as far up each time: callers are as deep as there are nodes, at most.
    for _ in range(len(found).bit_length()):
        above = above[above]
    return found[above]
