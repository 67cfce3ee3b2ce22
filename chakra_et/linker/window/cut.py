"""A window of a recording, chosen by steps or by an annotation, in both files."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.codes import among, distinct
from chakra_et.columns import Mask, Rows
from chakra_et.errors import ChakraError
from chakra_et.graph.intervals import inside, union
from chakra_et.linker.window.backlog import backlog_warnings, releases
from chakra_et.patterns import lazy_pattern
from chakra_et.recording import NO_ID, DeviceTrace, HostTrace, Role
from chakra_et.recording.device_trace import OUTSIDE
from chakra_et.recording.libraries import STEP

_STEPS: Final = lazy_pattern(r"(\d{1,18})(?:\.\.(\d{1,18}))?$")
_DEEPEST: Final = 64
_SHOWN: Final = 8


class Window(msgspec.Struct, frozen=True):
    """Which annotations to keep, with all that lies within them.

    It is an `annotation` by name, else the profiler's steps from `first` to `last`.
    """

    described: str
    annotation: str | None = None
    first: int = 0
    last: int = 0

    def chosen(self, name: str) -> bool:
        """Whether an annotation of this name is one to keep."""
        if self.annotation is not None:
            return name == self.annotation
        step = STEP.fullmatch(name)
        return step is not None and self.first <= int(step[1]) <= self.last


def window(steps: str | None, annotation: str | None) -> Window | None:
    """The window that is asked for: `2..3` or `2` for steps, a name for an annotation.

    Raises ChakraError for steps that are no numbers, or if both are given.
    """
    if steps is not None and annotation is not None:
        raise ChakraError("both steps and an annotation", remedy="Give one of them.")
    if annotation is not None:
        return Window(f"annotation {annotation!r}", annotation)
    if steps is None:
        return None
    match = _STEPS.match(steps)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if first > last:
        raise ChakraError(
            f"{steps!r} are not a range of steps", remedy="Write them as 2..3, or 2 for one step."
        )
    return Window(f"steps {steps}", None, first, last)


def cut_host(host: HostTrace, wanted: Window, whole: DeviceTrace | None = None) -> HostTrace:
    """The nodes of a host trace within a window, and the callers of these.

    The framework numbers operations as they begin, on all threads: the window ends where the
    thread of the annotation goes on with something that is not inside it. Where the profile
    (`whole`) has the same operations by their ids, its times decide.
    """
    rows = _chosen(wanted, host.names.in_order, host.name)
    if len(rows) == 0:
        raise _nothing(wanted, host.names.in_order, host)
    caller = _callers(host)
    inside = np.zeros(len(host), np.bool_)
    for row in rows.tolist():
        within = _descendants(caller, row)
        later = (host.thread == host.thread[row]) & (host.id > host.id[row]) & ~within
        end = host.id[later].min() if later.any() else np.uint64(2**64 - 1)
        inside |= (host.id >= host.id[row]) & (host.id < end)
    if whole is not None:
        ops = whole.role == Role.OP
        outside = whole.rf_id[ops & ~_within(whole, _annotations(whole, wanted))]
        inside &= ~among(host.rf_id, outside[outside > 0])
        inside &= ~whole.outside_rf_ids.has(host.rf_id)
    keep = inside.copy()
    front = np.flatnonzero(inside)
    while len(front):
        front = distinct(caller[front])
        front = front[(front >= 0) & ~keep[np.maximum(front, 0)]]
        keep[front] = True
    kept = host.select(keep)
    is_stub = np.arange(len(host)) >= len(host) - host.stubs
    stubs = int(np.count_nonzero(keep & is_stub))
    outside = host.outside + int(np.count_nonzero(~keep & ~is_stub))
    return replace(kept, stubs=stubs, outside=outside)


def cut_device(device: DeviceTrace, wanted: Window) -> DeviceTrace:
    """The records of a profile within a window: what began in it, and the work it launched.

    They know until when work that was launched outside held them.
    """
    rows = _annotations(device, wanted)
    if len(rows) == 0:
        raise _nothing(wanted, device.names.in_order, device)
    within = _within(device, rows)
    calls = device.role == Role.CALL
    known = calls & (device.correlation > 0)
    work = (device.role == Role.WORK) & (device.correlation != NO_ID)
    called = np.concatenate((device.correlation[known], device.outside_calls))
    has_call = work & among(device.correlation, called)
    within[has_call] = among(device.correlation, device.correlation[known & within])[has_call]
    released = releases(device, within)
    cut = replace(device, released_ns=released).select(within, OUTSIDE)
    return replace(cut, warnings=[*cut.warnings, *backlog_warnings(cut, cut.released_ns)])


def _annotations(device: DeviceTrace, wanted: Window) -> Rows:
    ops = device.rows(Role.OP)
    return ops[among(ops, _chosen(wanted, device.names.in_order, device.name))]


def _within(device: DeviceTrace, rows: Rows) -> Mask:
    """Which records begin while one of the given ones lasts."""
    start, lasting = device.start_ns, np.maximum(device.duration_ns[rows], 1)
    return inside(*union(start[rows], start[rows] + lasting), start)


def _chosen(wanted: Window, names: list[str], codes: npt.NDArray[np.int32]) -> Rows:
    use = np.array([wanted.chosen(name) for name in names], np.bool_)
    return np.flatnonzero(use[codes]) if len(codes) else np.zeros(0, np.int64)


def _callers(host: HostTrace) -> Rows:
    order = np.argsort(host.id, kind="stable")
    place = np.minimum(np.searchsorted(host.id[order], host.parent), len(host) - 1)
    found = (host.id[order[place]] == host.parent) & (host.parent != host.id)
    return np.where(found, order[place], -1)


def _descendants(caller: Rows, row: int) -> Mask:
    inside = np.zeros(len(caller), np.bool_)
    inside[row] = True
    for _ in range(_DEEPEST):
        grown = inside | ((caller >= 0) & inside[np.maximum(caller, 0)])
        if np.array_equal(grown, inside):
            break
        inside = grown
    return inside


def _nothing(wanted: Window, names: list[str], trace: HostTrace | DeviceTrace) -> ChakraError:
    if wanted.annotation is None:
        found = [name for name in names if STEP.fullmatch(name)]
        none = "It has no ProfilerStep annotation; a profiler with a schedule writes them."
    else:
        found = get_close_matches(wanted.annotation, names, _SHOWN)
        none = "It has no name like it."
    shown = ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")
    has = f"It has {shown}." if found else none
    return ChakraError(
        f"nothing lies in the window ({wanted.described})", path=trace.path, remedy=has
    )
