"""Checks of one rank."""

from __future__ import annotations

import re
from statistics import median
from typing import Final

import numpy as np

from chakra_et.doctor.capture import Capture
from chakra_et.doctor.check import Check
from chakra_et.recording import Role
from chakra_et.shown import number_of
from chakra_et.validators.finding import Severity

_ON_DEVICE: Final = re.compile(rb'"(?:cuda|xpu|hip|npu|mtia)(?::\d+)?"')
_KNOWN: Final = 0.99
"""The share of the profile's operations that the host trace of the same window has at least: those
at its edges may be missing."""
_FOLLOWED: Final = 0.1
_COLD: Final = 2.0
_EARLY_SCHEMA: Final = re.compile(r"1\.0\.\d")
_FRAMES: Final = "python_function"


def _unreadable(capture: Capture) -> str | None:
    return "; ".join(capture.unreadable) or None


def _no_host(capture: Capture) -> str | None:
    if capture.host is not None or capture.unreadable:
        return None
    return f"no host trace beside {' and '.join(capture.files)}"


def _no_profile(capture: Capture) -> str | None:
    if capture.device is not None or capture.unreadable:
        return None
    return f"no profile beside {' and '.join(capture.files)}"


def _damaged_host(capture: Capture) -> str | None:
    if capture.host is None or not capture.host.repairs:
        return None
    return f"{capture.host.path.name}: {'; '.join(capture.host.repairs.kinds)}"


def _damaged_profile(capture: Capture) -> str | None:
    if capture.device is None or not capture.device.repairs:
        return None
    return f"{capture.device.path.name}: {'; '.join(capture.device.repairs.kinds)}"


def _stopped(capture: Capture) -> str | None:
    steps = capture.manifest.get("steps")
    if not isinstance(steps, dict) or steps.get("recorded") == steps.get("wanted"):
        return None
    return f"{steps.get('recorded')} of {steps.get('wanted')} steps: the program ended before"


def _early_release(capture: Capture) -> str | None:
    if capture.host is None or capture.device is None or capture.profiled_ids.any():
        return None
    if not _EARLY_SCHEMA.match(capture.host.schema):
        return None
    return f"the host trace has schema {capture.host.schema}, of PyTorch before 2.4"


def _no_ids(capture: Capture) -> str | None:
    ids = capture.profiled_ids
    if len(ids) == 0 or ids.any() or _early_release(capture):
        return None
    return f"none of {number_of(len(ids), 'profiled operation')} has a record-function id"


def _another_window(capture: Capture) -> str | None:
    ids = capture.profiled_ids[capture.profiled_ids > 0]
    if capture.host is None or len(ids) == 0:
        return None
    known = int(np.isin(ids, capture.host.rf_id).sum())
    # What the host trace names as a caller, it saw: an exception ended it before it was written.
    if known + capture.host.stubs >= _KNOWN * len(ids):
        return None
    return f"the host trace has {known} of the {len(ids)} operations that the profiler saw"


def _no_shapes(capture: Capture) -> str | None:
    if capture.device is None or len(capture.profiled_ids) == 0 or capture.device.shapes.any():
        return None
    return "no operation of the profile has shapes"


def _unfollowed(capture: Capture) -> str | None:
    host = capture.host
    if host is None or not capture.profiled_ids.any():
        return None
    operator = host.op_schema != host.op_schemas.get("", -1)
    seen = np.isin(host.rf_id, capture.profiled_ids[capture.profiled_ids > 0])
    lost = operator & ~np.isin(host.thread, host.thread[seen])
    count, of = int(lost.sum()), int(operator.sum())
    if count <= _FOLLOWED * of:
        return None
    threads = len(np.unique(host.thread[lost]))
    where = number_of(threads, "thread")
    return f"{count} of {of} operators have no time: they ran on {where} of the program's own"


def _no_steps(capture: Capture) -> str | None:
    if capture.device is None or capture.steps:
        return None
    return "no ProfilerStep annotation"


def _cold(capture: Capture) -> str | None:
    lasting = [capture.step_times[step][1] for step in capture.steps]
    if len(lasting) < 3 or lasting[0] <= _COLD * median(lasting[1:]):
        return None
    first, usual = lasting[0] / 1e6, median(lasting[1:]) / 1e6
    return f"the first step took {first:.1f} ms, the others {usual:.1f} ms"


def _no_waits(capture: Capture) -> str | None:
    if capture.waits == 0 or capture.count(Role.SYNC) > 0:
        return None
    waits = number_of(capture.waits, "wait")
    return f"{waits} of host or streams, and no record of what they were for"


def _no_work(capture: Capture) -> str | None:
    if capture.device is None or capture.count(Role.WORK) > 0:
        return None
    calls = capture.count(Role.CALL)
    if calls:
        return f"{number_of(calls, 'call')} of the device's runtime, and no work on a device"
    texts = [] if capture.host is None else capture.host.texts.in_order
    if any(_ON_DEVICE.search(text) for parts in texts for text in parts):
        return "operators have tensors on a device, and the profile has no work there"
    return None


def _no_groups(capture: Capture) -> str | None:
    if not capture.communicates or capture.lists_groups:
        return None
    return "operators communicate, and neither file lists the process groups"


def _frames(capture: Capture) -> str | None:
    counts = {} if capture.device is None else capture.device.counts
    frames = sum(count for (category, _), count in counts.items() if category == _FRAMES)
    return f"{number_of(frames, 'Python frame')}, which slow the run down" if frames else None


_COLLECT: Final = "Record both with chakra collect, or as docs/recording.md has it."
CHECKS: Final = (
    Check("unreadable", Severity.ERROR, "Record this rank again.", _unreadable),
    Check(
        "no-host-trace",
        Severity.ERROR,
        "Pass an ExecutionTraceObserver to profile(execution_trace_observer=...). " + _COLLECT,
        _no_host,
    ),
    Check(
        "no-profile",
        Severity.ERROR,
        "Call export_chrome_trace in the process of the observer. " + _COLLECT,
        _no_profile,
    ),
    Check(
        "host-trace-damaged",
        Severity.WARNING,
        "Call observer.unregister_callback() when the window is over, in a finally: it writes the "
        "end of the file.",
        _damaged_host,
    ),
    Check(
        "profile-damaged",
        Severity.WARNING,
        "Let the process live until export_chrome_trace returns, and check that the disk has room.",
        _damaged_profile,
    ),
    Check(
        "stopped-early",
        Severity.WARNING,
        "Run more steps, or ask for fewer: --steps, --warmup.",
        _stopped,
    ),
    Check(
        "early-pytorch",
        Severity.WARNING,
        "Record with PyTorch 2.4 or later: both files then have the same ids, and the join is "
        "exact.",
        _early_release,
    ),
    Check(
        "no-ids",
        Severity.WARNING,
        "Pass the observer to profile(execution_trace_observer=...), with PyTorch 2.4 or later.",
        _no_ids,
    ),
    Check(
        "other-window",
        Severity.WARNING,
        "Let the profiler start and stop the observer: profile(execution_trace_observer=...), and "
        "one window for each observer and file.",
        _another_window,
    ),
    Check("no-shapes", Severity.WARNING, "Set profile(record_shapes=True).", _no_shapes),
    Check(
        "threads-not-followed",
        Severity.WARNING,
        "Set _ExperimentalConfig(profile_all_threads=True), with PyTorch 2.8 or later.",
        _unfollowed,
    ),
    Check(
        "no-steps",
        Severity.WARNING,
        "Call profiler.step() at the end of each step.",
        _no_steps,
    ),
    Check("cold", Severity.INFO, "Leave more steps out before: --warmup.", _cold),
    Check(
        "no-sync-events",
        Severity.WARNING,
        "Set _ExperimentalConfig(enable_cuda_sync_events=True).",
        _no_waits,
    ),
    Check(
        "no-device-work",
        Severity.WARNING,
        "Add ProfilerActivity.CUDA to the activities, and check that CUPTI is there and no other "
        "profiler has it (nsys, ncu, DCGM).",
        _no_work,
    ),
    Check(
        "no-groups",
        Severity.WARNING,
        "Call init_process_group and make all groups before the window opens.",
        _no_groups,
    ),
    Check("frames", Severity.INFO, "Leave with_stack out: it is not needed here.", _frames),
)
