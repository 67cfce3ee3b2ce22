"""What is the same in both views of a recording: names and ids."""

from __future__ import annotations

import numpy as np

from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.recording.device_trace import DeviceTrace
from chakra_et.recording.host_trace import HostTrace


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


def lookup(keys: Rows, values: Rows, wanted: Rows) -> Rows:
    """For each wanted number the value of the first equal key, or `NO_ROW`."""
    if len(keys) == 0:
        return np.full(len(wanted), NO_ROW, np.int64)
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    place = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    return np.where(ordered[place] == wanted, values[order[place]], NO_ROW)


def agreeing(record: Rows, host_name: Rows, record_name: Rows, device: DeviceTrace) -> Mask:
    """Which joined host nodes have the name that their record has."""
    hidden = np.array([name == "unknown" for name in device.names], np.bool_)
    joined = record != NO_ROW
    same = np.zeros(len(record), np.bool_)
    rows = record[joined]
    # The profiler replaces a whole name by "unknown" if a character of it is not printable.
    same[joined] = (host_name[joined] == record_name[rows]) | hidden[device.name[rows]]
    return same
