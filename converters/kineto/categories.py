"""What each category of profiler record is, for every vendor: data, not code paths."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Role(IntEnum):
    """What a record stands for in the graph."""

    OP = 0
    """An operation or annotation of the framework, on a host thread."""
    CALL = 1
    """A call of the device's runtime or driver, on a host thread."""
    WORK = 2
    """Work on a device: a kernel, a copy, a memset."""
    SYNC = 3
    """A record of waiting: evidence for edges, not work."""


ROLES: Final[dict[str, Role]] = {
    "cpu_op": Role.OP,
    "user_annotation": Role.OP,
    "Operator": Role.OP,
    "cuda_runtime": Role.CALL,
    "cuda_driver": Role.CALL,
    "Runtime": Role.CALL,
    "xpu_runtime": Role.CALL,
    "xpu_driver": Role.CALL,
    "mtia_runtime": Role.CALL,
    "privateuse1_runtime": Role.CALL,
    "privateuse1_driver": Role.CALL,
    "glow_runtime": Role.CALL,
    "kernel": Role.WORK,
    "gpu_memcpy": Role.WORK,
    "gpu_memset": Role.WORK,
    "Kernel": Role.WORK,
    "Memcpy": Role.WORK,
    "Memset": Role.WORK,
    "mtia_ccp_events": Role.WORK,
    "hpu_op": Role.WORK,
    "cuda_sync": Role.SYNC,
    "xpu_sync": Role.SYNC,
}

DEVICE_CATEGORIES: Final = frozenset(c for c, role in ROLES.items() if role is Role.WORK)

LEFT_OUT: Final[dict[str, str]] = {
    "ac2g": "flow arrow for a viewer; correlation ids say the same",
    "async_cpu_to_gpu": "flow arrow for a viewer; correlation ids say the same",
    "fwdbwd": "flow arrow for a viewer; sequence numbers say the same",
    "Trace": "span of the whole recording",
    "gpu_user_annotation": "projection of a host annotation on a device row",
    "python_function": "Python frame; the operations inside are kept",
    "cpu_instant_event": "instant of the memory profiler",
    "overhead": "the profiler's own overhead",
    "cuda_event": "event record without duration",
    "external_correlation": "bookkeeping of the profiler",
}
"""Why records of a category, or of a phase, do not become nodes."""

LEFT_OUT_PHASES: Final[dict[str, str]] = {
    "M": "names and order of rows in a viewer",
    "i": "instant without duration",
    "I": "instant without duration",
    "C": "counter",
    "s": "flow arrow for a viewer",
    "f": "flow arrow for a viewer",
    "t": "flow arrow for a viewer",
}
