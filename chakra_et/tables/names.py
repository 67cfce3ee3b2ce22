"""What the rows of tables can stand for: the command line asks without importing the tables."""

from typing import Final

BY: Final = {
    "name": "operators, by self and total time",
    "type": "types of nodes",
    "shape": "latency of operators by shapes and types of their inputs",
    "stream": "threads and streams, and how busy they are",
    "group": "process groups",
    "module": "annotations, or phases and layers of generated traces",
    "kernel": "kernels, copies and memsets",
    "collective": "collectives by type, group and size",
    "call": "each collective and message",
    "rank": "ranks, and what their time went into",
    "step": "the profiler's steps on each rank",
    "device": "device time: busy, idle, and what it was busy with",
    "idle": "gaps between pieces of work on each stream",
    "memory": "memory that tensors hold",
}
