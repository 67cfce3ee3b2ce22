"""What the ranks of one machine do to each other: time that they took from each other, apart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chakra_et.columns import Rows
from chakra_et.errors import ChakraError
from chakra_et.model import UNKNOWN_NS, TraceSet
from chakra_et.replay.meetings import Meetings
from chakra_et.replay.processors import Processors, Stretch, stretch, users
from chakra_et.whatif.apart import waits_apart
from chakra_et.whatif.edit import Edit, with_parts
from chakra_et.whatif.values import whole


def shared_processors(text: str, _: str, value: str) -> Edit:
    """All ranks ran on one machine of so many processors, or run on one of so many others.

    `processors=2:4,sleep` is of operators that wait without a processor, too, by their names.
    """
    counts, _, waits = value.partition(",")
    had, found, has = counts.partition(":")
    try:
        re.compile(waits)
    except re.error as error:
        raise ChakraError(
            f"{text}: invalid regular expression {waits!r}: {error}", remedy="Escape it with \\."
        ) from error
    before = Processors(whole(text, had, least=1), waits)
    after = replace(before, count=whole(text, has, least=1)) if found else before
    return Edit(text, lambda traces: (traces, None), processors=(before, after))


def work_alone(traces: TraceSet, edit: Edit, edits: Sequence[Edit]) -> TraceSet:
    """The run as if each thread and transfer had a processor to itself, before all `edits`.

    Waits of communications are taken out, as `waits_apart` does. Raises ChakraError where
    durations are not those of processors alone.
    """
    assert edit.processors is not None
    meetings = Meetings.of(waits_apart(traces))
    _refuse(meetings, edit, edits)
    common = meetings.recorded().common
    longer = _recorded(meetings, common, edit.processors[0])
    alone = np.rint(common / longer.transfers).astype(np.int64)
    return _with_work(meetings, traces, longer, common - alone)


def _refuse(meetings: Meetings, edit: Edit, edits: Sequence[Edit]) -> None:
    """Raise ChakraError where sharing of processors says nothing of how long a run takes."""
    if any((c.device & ~c.communication & (c.duration > 0)).any() for c in meetings.ranks):
        raise ChakraError(
            f"{edit.text}: this run has work on devices",
            remedy="Only of runs on processors alone is it known what sharing them costs.",
        )
    if any(each.network is not None or each.plan is not None for each in edits):
        raise ChakraError(
            f"{edit.text}: does not go with a network, or with another plan of the model",
            remedy="Leave one of them out.",
        )


def _with_work(meetings: Meetings, traces: TraceSet, longer: Stretch, less: Rows) -> TraceSet:
    """The run with all work as long as alone; `less` is how much shorter transfers are."""
    shorter = [np.zeros(len(columns), np.int64) for columns in meetings.ranks]
    for rows, ns in zip(meetings.members, less.tolist(), strict=True):
        for i, row in rows.items():
            shorter[i][row] = ns
    made = {}
    for rank, columns, of_parts, by in zip(
        traces, meetings.ranks, longer.parts, shorter, strict=True
    ):
        parts = columns.parts
        ns = np.rint(parts.ns / of_parts).astype(np.int64)
        ns -= np.where(parts.own, np.minimum(by[parts.node], ns), 0)
        made[rank] = with_parts(columns.trace, columns, ns)
    return TraceSet(made)


def _recorded(meetings: Meetings, common: Rows, processors: Processors) -> Stretch:
    """How much longer everything took in the recording than alone."""
    starts = [
        np.where(columns.met == UNKNOWN_NS, columns.begin, columns.met) - offset
        for columns, offset in zip(meetings.ranks, meetings.offsets, strict=True)
    ]
    parts = [columns.parts for columns in meetings.ranks]
    uses = users(meetings.ranks, parts, processors.waits)
    return stretch(uses, parts, starts, meetings.members, common, processors.count)
