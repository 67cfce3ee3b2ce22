"""What each category of profiler record is, for every vendor: data, not code paths."""

from __future__ import annotations

from typing import Final

from chakra_et.recording import Role

ROLES: Final[dict[str, Role]] = {
    "cpu_op": Role.OP,
    "user_annotation": Role.OP,
    "collective_comm": Role.OP,
    "Operator": Role.OP,
    "cuda_runtime": Role.CALL,
    "cuda_driver": Role.CALL,
    "Runtime": Role.CALL,
    "hip_runtime": Role.CALL,
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
    "graph_host_node": Role.WORK,
    "cuda_sync": Role.SYNC,
    "xpu_sync": Role.SYNC,
    "CANN": Role.CALL,
    "Ascend Hardware": Role.WORK,
}

ANNOTATIONS: Final = frozenset({"user_annotation"})
"""Spans that a program names: they enclose operations and are none themselves."""

DEVICE_CATEGORIES: Final = frozenset(c for c, role in ROLES.items() if role is Role.WORK)

LEFT_OUT: Final[dict[str, str]] = {
    "ac2g": "flow arrow for a viewer; correlation ids say the same",
    "async_cpu_to_gpu": "flow arrow for a viewer; correlation ids say the same",
    "fwdbwd": "arrow from a forward to its backward operation: evidence, not work",
    "Trace": "span of the whole recording",
    "gpu_user_annotation": "projection of a host annotation on a device row",
    "python_function": "Python frame; the operations inside are kept",
    "cpu_instant_event": "instant of the memory profiler",
    "overhead": "the profiler's own overhead",
    "cuda_event": "event record without duration",
    "external_correlation": "bookkeeping of the profiler",
    "xpu_scope_profiler": "summary of hardware counters",
    "cuda_profiler_range": "summary of hardware counters",
    "mtia_insight": "summary of hardware counters",
    "mtia_counters": "counter",
    "hardware_counters": "counter",
    "HostToDevice": "arrow from a call to its device work: evidence, not work",
    "async_npu": "arrow from an operation to its device work: evidence, not work",
    "async_task_queue": "flow arrow for a viewer",
    "enqueue": "hand-over to the queue of another thread",
    "dequeue": "hand-over from the queue of another thread",
}
"""Why records of a category, or of a phase, do not become nodes."""

PROCESSES: Final = ("CANN", "Ascend Hardware")
"""Processes whose names count as the category of records that have none (Ascend writes such)."""

ROLE_ENDINGS: Final[dict[str, Role]] = {
    "_runtime": Role.CALL,
    "_driver": Role.CALL,
    "_sync": Role.SYNC,
}
"""What records of other categories are, by how the category's name ends."""

ANNOTATION: Final = "annotation"
"""What names of categories have in them whose records repeat host annotations on a device row."""

COPY: Final = "memcpy"
FILL: Final = "memset"
"""What categories of copies, and of memory that is set, have in common, whoever the vendor is."""

UNKNOWN: Final = "category not known to this version"

LAUNCH_FLOWS: Final = frozenset({"HostToDevice", "async_npu"})
"""Flow arrows that may be the only tie between a call, or an operation, and its device work."""

FORWARD_FLOWS: Final = frozenset({"fwdbwd"})
"""Flow arrows from a forward operation to the backward operation that follows from it."""

GRAPH_FLOWS: Final = frozenset({"ac2g"})
FIRST_GRAPH_FLOW: Final = 1 << 40
"""Flow arrows with ids from this on lead from node to node inside a launch of a graph."""

GRAPH_ARROW: Final = "arrow between nodes of a graph: evidence, not work"

NO_STREAM: Final = (-1, (1 << 32) - 1, (1 << 64) - 1)
"""How profilers say that a wait is not about one stream."""

LEFT_OUT_PHASES: Final[dict[str, str]] = {
    "M": "names and order of rows in a viewer",
    "i": "instant without duration",
    "I": "instant without duration",
    "C": "counter",
    "s": "flow arrow for a viewer",
    "f": "flow arrow for a viewer",
    "t": "flow arrow for a viewer",
    "B": "beginning without an end",
    "E": "end of an interval: the record of its beginning, if there is one, stands for both",
}
