"""Rules about how a trace was recorded, each with the setting that cures it.

They speak of traces that were converted from a framework's host trace or a profile.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import Mask
from chakra_et.model import EdgeKind
from chakra_et.validators.finding import NOTHING, Hits
from chakra_et.validators.rule import trace_rule
from chakra_et.validators.view import ABSENT, TraceView

_CALLS: Final = ("cuda_runtime", "cuda_driver")
_NO_SHAPES: Final = (b"", b"[]")


@trace_rule(
    "ET601",
    "No operator has the shapes of its inputs.",
    why="Sizes of collectives and work of kernels cannot be told.",
    cure="Record with `profile(record_shapes=True)`; ExecutionTraceObserver always has shapes.",
)
def no_shapes(view: TraceView) -> Hits:
    """Host nodes with a schema, none with shapes."""
    operators = view.present("op_schema")
    if not operators.any():
        return NOTHING
    shaped = np.array([io[1].strip() not in _NO_SHAPES for io in view.nodes.texts] + [False])
    if shaped[view.nodes.input_code[operators]].any():
        return NOTHING
    return view.whole(f"{np.count_nonzero(operators)} operators, none with shapes")


@trace_rule(
    "ET602",
    "No wait between streams, or between host and device, was recorded.",
    why="A replay with other speeds lets work start that would have waited.",
    cure="Record with `_ExperimentalConfig(enable_cuda_sync_events=True)`.",
)
def no_sync(view: TraceView) -> Hits:
    """Device work on several streams without an edge of kind `event` or `sync`."""
    stream = view.integers("stream")
    streams = np.unique(stream[stream != ABSENT])
    if len(streams) < 2:
        return NOTHING
    if np.isin(view.edges.kind, (EdgeKind.EVENT, EdgeKind.SYNC)).any():
        return NOTHING
    return view.whole(f"{len(streams)} streams, no edge of kind event or sync")


@trace_rule(
    "ET603",
    "No node has a time.",
    why="The trace tells what was done, not how long it took: a replay takes no time.",
    cure="Record a profile of the same steps, and convert with both: --host and --device.",
    kin="ET303 ET604",
)
def host_only(view: TraceView) -> Hits:
    """Nodes of a host trace, none with a start."""
    host = view.present("host_id")
    if not host.any() or view.timed.any():
        return NOTHING
    return view.whole(f"{np.count_nonzero(host)} nodes of a host trace, none with a start")


@trace_rule(
    "ET604",
    "The host trace has no record-function ids.",
    why="Host and device can be joined by order alone, which a dropped record breaks.",
    cure="Record both with torch 2.1 or newer, in one window.",
)
def no_record_ids(view: TraceView) -> Hits:
    """Host nodes, none with an `rf_id` but 0."""
    host = view.present("host_id")
    if not host.any() or (view.integers("rf_id") > 0).any():
        return NOTHING
    return view.whole(f"{np.count_nonzero(host)} host nodes, no rf_id above 0")


@trace_rule(
    "ET605",
    "Calls that launch work have none.",
    why="The profiler dropped kernels: device time is missing.",
    cure="Record fewer steps, or with larger activity buffers.",
)
def dropped_kernels(view: TraceView) -> Hits:
    """Launching calls whose correlation no device node has, where most have one."""
    calls = _launches(view)
    if not calls.any():
        return NOTHING
    correlation = view.integers("correlation")
    device = correlation[view.integers("stream") != ABSENT]
    without = np.flatnonzero(calls & ~np.isin(correlation, device))
    return view.hits(without, "no device work has its correlation") if len(device) else NOTHING


@trace_rule(
    "ET606",
    "Host trace and profile are not of the same window.",
    why="Operators without a time, or a profile without its operators.",
    cure="Start and stop both with one schedule: pass the observer to the profiler.",
    kin="ET603",
)
def other_window(view: TraceView) -> Hits:
    """More than a tenth of the operators without a time, on threads on which others have one."""
    operators, followed = _operators(view)
    count = np.count_nonzero(operators & followed)
    without = np.count_nonzero(operators & followed & ~view.timed)
    if without * 10 <= count:
        return NOTHING
    return view.whole(f"{without} of {count} operators have no time")


@trace_rule(
    "ET607",
    "The profiler did not follow all threads.",
    why="Their operators have no time, and a replay runs them in no time.",
    cure="Pass experimental_config=_ExperimentalConfig(profile_all_threads=True) to the profiler.",
    kin="ET606",
)
def threads_not_followed(view: TraceView) -> Hits:
    """More than a tenth of the operators on threads on which none has a time, where others do."""
    operators, followed = _operators(view)
    count = np.count_nonzero(operators)
    without = np.count_nonzero(operators & ~followed)
    if without * 10 <= count or without == count:
        return NOTHING
    return view.whole(f"{without} of {count} operators ran on threads on which none has a time")


def _operators(view: TraceView) -> tuple[Mask, Mask]:
    """Operators of the host trace, and which nodes are on a thread with one that has a time."""
    operators = view.present("op_schema") & view.present("host_id")
    thread = view.integers("tid")
    followed: Mask = np.isin(thread, thread[operators & view.timed])
    return operators, followed


def _launches(view: TraceView) -> Mask:
    """Runtime and driver calls that launch kernels or copies, by their names."""
    launch = np.array([_launches_work(name) for name in view.nodes.names] or [False])
    category = np.isin(view.texts("category").astype(str), _CALLS)
    return np.asarray(category & launch[view.nodes.name_code] & (view.integers("correlation") > 0))


def _launches_work(name: str) -> bool:
    return "LaunchKernel" in name or name.startswith(("cudaMemcpyAsync", "hipMemcpyAsync"))
