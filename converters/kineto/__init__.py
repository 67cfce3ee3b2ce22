"""Kineto profiles: what the profiler saw of host and device."""

from chakra_et.converters.kineto.categories import Role
from chakra_et.converters.kineto.device_trace import DeviceTrace
from chakra_et.converters.kineto.processes import process_ids, split_processes
from chakra_et.converters.kineto.reader import read_device

__all__ = ["DeviceTrace", "Role", "process_ids", "read_device", "split_processes"]
