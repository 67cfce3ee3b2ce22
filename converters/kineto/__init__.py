"""Kineto profiles: what the profiler saw of host and device."""

from typing import TYPE_CHECKING

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.converters.kineto.processes import process_ids, split_processes
    from chakra_et.converters.kineto.reader import read_device

__all__ = ["process_ids", "read_device", "split_processes"]

# How to recognise the format is asked of every file, how to read it of few.
__getattr__ = lazily(
    __name__,
    {
        "process_ids": "processes",
        "split_processes": "processes",
        "read_device": "reader",
    },
)
