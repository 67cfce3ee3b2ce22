"""What a generated set holds, counted: parameters, FLOP and bytes by rank, collective and phase."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from chakra_et.build import Workload
from chakra_et.build.columns import Programmed
from chakra_et.build.grid import Ranks
from chakra_et.build.operation import Operation, Tags
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.workloads.memory import memory, peak_of_tensors
from chakra_et.workloads.parameters import Part
from chakra_et.workloads.plan import Plan


class Summary:
    """Watches the programs of a workload, and counts what each does, with the ranks that run it."""

    def __init__(self, plan: Plan, workload: Workload) -> None:
        self._plan = plan
        self._workload = workload
        self.programs: list[dict[str, Any]] = []

    def add(self, columns: Programmed, ranks: Ranks) -> None:
        """Count one program."""
        stage = int(self._workload.grid.coordinate("pp", int(ranks[0])))
        parts = [Part(self._plan, stage + self._plan.pp * c) for c in range(self._plan.chunks)]
        flops: Counter[str] = Counter()
        moved: Counter[str] = Counter()
        collectives: Counter[tuple[str, str, str, int]] = Counter()
        messages: Counter[tuple[str, str, str, int]] = Counter()
        for operation, tags, count in distinct(columns):
            phase = tags.phase or ""
            if operation.type == NodeType.COMP:
                flops[phase] += count * (operation.flops or 0)
                moved[phase] += count * (operation.moved_bytes or 0)
            elif operation.family is not None:
                type = CollectiveType(operation.collective or 0).name
                collectives[phase, type, operation.family, operation.size_bytes or 0] += count
            else:
                way = "send" if operation.type == NodeType.COMM_SEND else "receive"
                messages[phase, way, operation.name, operation.size_bytes or 0] += count
        told = memory(self._plan, stage).as_dict()
        if self._workload.tensors:
            told["tensors"] = peak_of_tensors(columns.trace(int(ranks[0])))
        self.programs.append(
            {
                "ranks": ranks.tolist(),
                "nodes": columns.count,
                "edges": len(columns.edges),
                "parameters": sum(u.size for part in parts for u in part.all()),
                "flops": dict(flops),
                "moved_bytes": dict(moved),
                "collectives": [self._told(*key, count) for key, count in collectives.items()],
                "messages": [
                    {"phase": phase, "type": way, "name": name, "bytes": size, "count": count}
                    for (phase, way, name, size), count in messages.items()
                ],
                "memory_bytes": told,
            }
        )

    def _told(self, phase: str, type: str, family: str, size: int, count: int) -> dict[str, Any]:
        return {
            "phase": phase,
            "type": type,
            "group": family,
            "ranks": self._workload.families[family].size,
            "bytes": size,
            "count": count,
        }

    def as_dict(self) -> dict[str, Any]:
        """For JSON; `bytes` are those of a rank's input, as `comm_size` is."""
        flops: Counter[str] = Counter()
        for program in self.programs:
            for phase, value in program["flops"].items():
                flops[phase] += value * len(program["ranks"])
        return {
            "model": self._plan.model.name,
            "parameters": self._plan.model.parameters,
            "world_size": self._workload.grid.world_size,
            "grid": self._workload.grid.axes,
            "micro_batches": self._plan.micro_batches,
            "flops": {**flops, "total": sum(flops.values())},
            "peak_memory_bytes": max(p["memory_bytes"]["total"] for p in self.programs),
            "programs": self.programs,
        }


def distinct(columns: Programmed) -> list[tuple[Operation, Tags, int]]:
    """Operations with their tags, and how many nodes are of each."""
    tags = columns.tags
    both = columns.operation_of * len(tags) + columns.tags_of
    found, counts = np.unique(both, return_counts=True)
    return [
        (columns.operations[code // len(tags)], tags[code % len(tags)], count)
        for code, count in zip(found.tolist(), counts.tolist(), strict=True)
    ]
