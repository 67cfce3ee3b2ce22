"""Tables of traces: operators, kernels, collectives, ranks, and the columns themselves.

>>> from chakra_et.tables import operator_table, rank_table
>>> operator_table(traces).to_pandas()
"""

from typing import TYPE_CHECKING

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.tables.collectives import call_table, collective_table
    from chakra_et.tables.frames import FRAMES, frame
    from chakra_et.tables.groups import group_table
    from chakra_et.tables.kernels import kernel_table
    from chakra_et.tables.lanes import lane_table
    from chakra_et.tables.latencies import latency_table
    from chakra_et.tables.memory import memory_table
    from chakra_et.tables.modules import module_table
    from chakra_et.tables.operators import operator_table, type_table
    from chakra_et.tables.ranks import device_table, idle_table, rank_table, step_table
    from chakra_et.tables.stats import OVERVIEW, TABLES, overview, table_by
    from chakra_et.tables.table import Table
    from chakra_et.tables.work import Work, work_of

__all__ = [
    "FRAMES",
    "OVERVIEW",
    "TABLES",
    "Table",
    "Work",
    "call_table",
    "collective_table",
    "device_table",
    "frame",
    "group_table",
    "idle_table",
    "kernel_table",
    "lane_table",
    "latency_table",
    "memory_table",
    "module_table",
    "operator_table",
    "overview",
    "rank_table",
    "step_table",
    "table_by",
    "type_table",
    "work_of",
]

__getattr__ = lazily(
    __name__,
    {
        "call_table": "collectives",
        "collective_table": "collectives",
        "frame": "frames",
        "FRAMES": "frames",
        "group_table": "groups",
        "kernel_table": "kernels",
        "lane_table": "lanes",
        "latency_table": "latencies",
        "memory_table": "memory",
        "module_table": "modules",
        "operator_table": "operators",
        "type_table": "operators",
        "device_table": "ranks",
        "idle_table": "ranks",
        "rank_table": "ranks",
        "step_table": "ranks",
        "OVERVIEW": "stats",
        "TABLES": "stats",
        "overview": "stats",
        "table_by": "stats",
        "Table": "table",
        "Work": "work",
        "work_of": "work",
    },
)
