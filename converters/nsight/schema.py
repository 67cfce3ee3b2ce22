"""What the tables of an export hold, and what their numbers stand for: data."""

from __future__ import annotations

from typing import Final

from chakra_et.recording import Kind

CALLS: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
KERNELS: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
FILLS: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
WAITS: Final = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
EVENTS: Final = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
RANGES: Final = "NVTX_EVENTS"
LIBRARIES: Final = ("CUBLAS_EVENTS", "CUDNN_EVENTS")
READ: Final = frozenset({CALLS, KERNELS, COPIES, FILLS, GRAPHS, WAITS, RANGES, *LIBRARIES})
"""Tables whose rows become records."""

STRINGS: Final = "StringIds"
SESSION: Final = "TARGET_INFO_SESSION_START_TIME"
PROCESSES: Final = "PROCESSES"
MPI_RANKS: Final = "MPI_RANKS"

TIMES: Final = ("start", "timestamp", "rawTimestamp")
"""A table that has one of these columns holds events."""

LEFT_OUT: Final = {
    EVENTS: "event record without duration: evidence for waits; the call that made it is kept",
    "OSRT_API": "call of the operating system's libraries",
    "SCHED_EVENTS": "change of the thread that a core runs",
    "COMPOSITE_EVENTS": "sample of a thread",
    "GPU_METRICS": "counter",
    "GPU_CONTEXT_SWITCH_EVENTS": "change of the context that a device runs",
    "PROFILER_OVERHEAD": "the profiler's own overhead",
    "DIAGNOSTIC_EVENT": "message of the profiler",
    "NvtxPushPopRanges": "summary of ranges, made by nsys stats",
    "CUDA_GRAPH_EVENTS": "making of a graph; its launches are kept",
    "CUDA_GRAPH_NODE_EVENTS": "making of a graph's node; its launches are kept",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "instant of the memory profiler",
    "CUDA_GPU_MEMORY_POOL_EVENTS": "instant of the memory profiler",
}
"""Why rows of other tables do not become nodes."""
UNKNOWN_TABLE: Final = "table of events that is not converted"

NO_NUMBER: Final = "its time, or another number that it needs, is not a number"
IDLE_PROCESS: Final = "of a process that uses no device, beside others that do"

MARK: Final = "mark: an instant without duration"
DEFINITION: Final = "name of a domain, category or thread"
NO_END: Final = "range without an end"
TWO_THREADS: Final = "range that begins on one thread and ends on another"
UNKNOWN_RANGE: Final = "kind of NVTX event not known to this version"
NESTED: Final = (59, 70)
"""Types of ranges that are pushed and popped on one thread (70: imported from a text)."""
FREE: Final = (60, 71)
"""Types of ranges that begin and end anywhere."""
DOMAIN: Final = 75
NO_RANGES: Final = {34: MARK, 33: DEFINITION, 39: DEFINITION, DOMAIN: DEFINITION, 76: DEFINITION}

SHAPE: Final = {
    "grid": ("gridX", "gridY", "gridZ"),
    "block": ("blockX", "blockY", "blockZ"),
    "registers per thread": ("registersPerThread",),
    "graph node id": ("graphNodeId",),
}
"""What kernels carry, in the words of PyTorch's profiler, and the columns that hold it."""

COPY_KINDS: Final = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD",
    9: "HtoH", 10: "PtoP", 11: "HtoD", 12: "DtoH", 13: "DtoD",
}  # fmt: skip
"""Directions of copies in the words of PyTorch's profiler: by the numbers of CUPTI, and of what the
driver moves itself where memory is managed (from 11 on)."""
COPY_NAMES: Final = "ENUM_CUDA_MEMCPY_OPER"
TO_HOST: Final = 2
MEMORIES: Final = {0: "Pageable", 1: "Pinned", 2: "Device", 3: "Array", 4: "Managed"}
"""Kinds of memory, where the export does not name them."""
MEMORY_NAMES: Final = "ENUM_CUDA_MEM_KIND"
PAGEABLE: Final = "pageable"

WAIT_KINDS: Final = {
    1: (Kind.WAIT_EVENT, "Event Sync"),
    2: (Kind.STREAM_WAIT, "Stream Wait Event"),
    3: (Kind.WAIT_STREAM, "Stream Sync"),
    4: (Kind.WAIT_DEVICE, "Context Sync"),
}
"""Types of waits, and how PyTorch's profiler calls them."""
OTHER_WAIT: Final = "Unknown Sync"
NONE: Final = (-1, (1 << 32) - 1)
"""How a wait says that it is not about one stream, or about no event."""
