"""Work of several devices in one trace, where a simulator has one device for each rank."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import Kind
from chakra_et.errors import ChakraError
from chakra_et.model import Trace, TraceSet
from chakra_et.passes.base import Change, PassResult, run_pass, speaking
from chakra_et.passes.edit import without_nodes
from chakra_et.validators.view import ABSENT, TraceView

_REMEDY: Final = (
    "Record a process for each device, as torchrun starts them. `chakra replay` takes the trace as "
    "it is."
)


@run_pass(
    "expect-one-device",
    "One device for each rank, as there is in the simulator.",
    ensures="ET724",
)
def expect_one_device(traces: TraceSet) -> PassResult:
    """Refuse traces of several devices, which would run one after the other in silence.

    Raises ChakraError.
    """
    for _, _, evidence in speaking(traces, frozenset({"ET724"})):
        raise ChakraError(
            f"a trace has work of several devices ({evidence}); ASTRA-sim has one device for each "
            "rank and would run them one after the other",
            remedy=_REMEDY,
        )
    return PassResult(traces, [])


@run_pass(
    "split-devices",
    "A rank for each device.",
    ensures="ET724",
)
def split_devices(traces: TraceSet) -> PassResult:
    """Make a rank of each device of a process, each with the host work of that process.

    What waited for work of another device waits for what that waited for; folded host time keeps
    the recorded times of each device. Raises ChakraError where the process communicates: which of
    its devices is which rank of a group, no trace tells.
    """
    views = {rank: TraceView(trace, rank) for rank, trace in traces.items()}
    devices = {rank: _devices(view) for rank, view in views.items()}
    if all(len(numbers) < 2 for numbers in devices.values()):
        return PassResult(traces, [])
    if any(len(view.communication) for view in views.values()):
        expect_one_device(traces)
    parts: dict[int, Trace] = {}
    changes = []
    for rank, numbers in devices.items():
        for number in numbers.tolist() or [ABSENT]:
            others = _of_others(views[rank], number)
            if others.any():
                changes.append(_change(len(parts), rank, number, views[rank], others))
            parts[len(parts)] = without_nodes(traces[rank], others)
    for rank, trace in parts.items():
        trace.metadata.set("rank", Kind.INT64, rank)
        trace.metadata.set("world_size", Kind.INT64, len(parts))
        # Groups of the processes, in which nobody communicates.
        trace.metadata.set("process_groups", Kind.STRING, None)
    return PassResult(TraceSet(parts), changes)


def _devices(view: TraceView) -> Rows:
    """The devices that have work in a trace."""
    device = view.integers("device")
    return np.unique(device[~view.on_host & (device != ABSENT)])


def _of_others(view: TraceView, number: int) -> Mask:
    """The work of other devices than this one."""
    device = view.integers("device")
    return np.asarray(~view.on_host & (device != ABSENT) & (device != number))


def _change(rank: int, process: int, number: int, view: TraceView, others: Mask) -> Change:
    """What the new rank has lost: the work of others, and edges between both."""
    source, target = view.source[view.sound_edges], view.target[view.sound_edges]
    crossing = int(np.count_nonzero(others[source] & ~others[target]))
    what = (
        f"nodes of other devices are left to other ranks; this one is device {number} of process "
        f"{process}, and {crossing} of its waits for them are recorded time now"
    )
    ids = view.nodes.id[others].tolist()
    return Change(what, int(np.count_nonzero(others)), rank, [(i, "") for i in ids[:1000]])
