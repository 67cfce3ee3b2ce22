"""Sections of tables: operators, kernels, collectives, groups, memory."""

from __future__ import annotations

from chakra_et.model import TraceSet
from chakra_et.pages.grid import Section, from_table
from chakra_et.tables import (
    collective_table,
    group_table,
    kernel_table,
    memory_table,
    operator_table,
)


def operators(traces: TraceSet) -> Section:
    """Operators by self and total time, and the kernels."""
    found = [
        from_table(operator_table(traces), "operators-table", "Operators and device work by name."),
        from_table(kernel_table(traces), "kernels-table", "Device work by name."),
    ]
    return Section("operators", "Operators", [], found, "" if found[0].rows else "There are none.")


def collectives(traces: TraceSet) -> Section:
    """Collectives and messages with sizes, bandwidths, exposed share and skew."""
    found = from_table(
        collective_table(traces), "collectives-table", "Communication by type, group and size."
    )
    empty = "" if found.rows else "No rank communicates."
    return Section("collectives", "Collectives", [], [found], empty)


def groups(traces: TraceSet) -> Section:
    """The process groups, and what they did."""
    found = from_table(group_table(traces), "groups-table", "Process groups and their calls.")
    return Section("groups", "Groups", [], [found], "" if found.rows else "No group is named.")


def memory(traces: TraceSet) -> Section:
    """What tensors held, where the host trace names their storages."""
    found = from_table(memory_table(traces), "memory-table", "Most memory in use at once.")
    empty = (
        ""
        if found.rows
        else "No node names a storage: memory is told by a host trace, not by a profile alone."
    )
    return Section("memory", "Memory", [], [found], empty)
