"""All tables of a run, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from chakra_et.model import Trace
from chakra_et.tables.collectives import call_table, collective_table
from chakra_et.tables.groups import group_table
from chakra_et.tables.kernels import kernel_table
from chakra_et.tables.lanes import lane_table
from chakra_et.tables.latencies import latency_table
from chakra_et.tables.memory import memory_table
from chakra_et.tables.modules import module_table
from chakra_et.tables.operators import operator_table, type_table
from chakra_et.tables.ranks import device_table, idle_table, rank_table, step_table
from chakra_et.tables.table import Table

Maker: TypeAlias = Callable[[Mapping[int, Trace]], Table]

TABLES: Final[dict[str, Maker]] = {
    "name": operator_table,
    "type": type_table,
    "shape": latency_table,
    "stream": lane_table,
    "group": group_table,
    "module": module_table,
    "kernel": kernel_table,
    "collective": collective_table,
    "call": call_table,
    "rank": rank_table,
    "step": step_table,
    "device": device_table,
    "idle": idle_table,
    "memory": memory_table,
}
"""What `chakra stats --by` shows."""
OVERVIEW: Final = ("rank", "name", "kernel", "collective", "memory")
"""What it shows without."""


def table_by(traces: Mapping[int, Trace], by: str) -> Table:
    """One of the tables of a run; `by` is a key of `TABLES`."""
    return TABLES[by](traces)


def overview(traces: Mapping[int, Trace]) -> dict[str, Table]:
    """The tables that say most of a run, those without rows left out."""
    found = {by: TABLES[by](traces) for by in OVERVIEW}
    return {by: table for by, table in found.items() if len(table)}
