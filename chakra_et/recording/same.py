"""What is the same in both views of a recording: names and ids."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.recording.device_trace import DeviceTrace
from chakra_et.recording.host_trace import HostTrace

Numbers: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.uint64]

_SPARSE: Final = 4
"""Numbers that span more than so many times their count are searched, others are places."""


def common_names(host: HostTrace, device: DeviceTrace) -> tuple[Rows, Rows]:
    """Names of host nodes and of records as codes of one pool."""
    place = {_as_profiled(name): code for code, name in enumerate(host.names)}
    translate = np.array(
        [place.get(_as_profiled(name), -1 - code) for code, name in enumerate(device.names)],
        np.int64,
    )
    own = np.array([place[_as_profiled(name)] for name in host.names], np.int64)
    return (
        own[host.name] if len(host) else np.zeros(0, np.int64),
        translate[device.name] if len(device) else np.zeros(0, np.int64),
    )


def _as_profiled(name: str) -> str:
    """A name as the profiler may have rewritten it: no line ends, slashes for backslashes."""
    return name.replace("\\", "/").replace("\n", "").replace("\r", "")


def lookup(keys: Numbers, values: Rows, wanted: Numbers) -> Rows:
    """For each wanted number the value of the first equal key, or `NO_ROW`.

    Keys and wanted numbers are both signed, or both unsigned.
    """
    if len(keys) == 0:
        return np.full(len(wanted), NO_ROW, np.int64)
    low = keys.min()
    span = int(keys.max()) - int(low) + 1
    if span > _SPARSE * len(keys):
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
        return np.where(ordered[place] == wanted, values[order[place]], NO_ROW)
    by_key = np.full(span, NO_ROW, np.int64)
    by_key[(keys - low)[::-1]] = values[::-1]
    # What is below the first key wraps around, far beyond the last.
    place = (wanted - low).view(np.uint64)
    return np.where(place < span, by_key.take(np.minimum(place, span - 1).view(np.int64)), NO_ROW)


def agreeing(record: Rows, host_name: Rows, record_name: Rows, device: DeviceTrace) -> Mask:
    """Which joined host nodes have the name that their record has."""
    hidden = np.array([name == "unknown" for name in device.names], np.bool_)
    joined = record != NO_ROW
    same = np.zeros(len(record), np.bool_)
    rows = record[joined]
    # The profiler replaces a whole name by "unknown" if a character of it is not printable.
    same[joined] = (host_name[joined] == record_name[rows]) | hidden[device.name[rows]]
    return same
