"""Kineto profiles: what the profiler saw of host and device."""

from typing import TYPE_CHECKING

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.converters.kineto.categories import Role
    from chakra_et.converters.kineto.device_trace import DeviceTrace
    from chakra_et.converters.kineto.processes import process_ids, split_processes
    from chakra_et.converters.kineto.reader import read_device

__all__ = ["DeviceTrace", "Role", "process_ids", "read_device", "split_processes"]

# How to recognise the format is asked of every file, how to read it of few.
__getattr__ = lazily(
    __name__,
    {
        "Role": "categories",
        "DeviceTrace": "device_trace",
        "process_ids": "processes",
        "split_processes": "processes",
        "read_device": "reader",
    },
)
