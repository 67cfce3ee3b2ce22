"""How long a step takes: a set replayed with a roofline, a network and fitted constants."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from chakra_et.definitions import NodeType
from chakra_et.estimate.constants import Constants
from chakra_et.estimate.copies import Copies, copies_of_workload
from chakra_et.estimate.costs import WORDS, Costs, Source, costs_of
from chakra_et.estimate.graph import Graph, graph_of
from chakra_et.estimate.running import Run, run_graph
from chakra_et.estimate.table import Task
from chakra_et.estimate.traffic import Traffic
from chakra_et.network import Network, Topology
from chakra_et.workloads import Device, Plan
from chakra_et.workloads import program as program_of_plan


@dataclass(frozen=True)
class Machine:
    """What a set runs on: devices, the network between them, and what rooflines do not know."""

    device: Device
    topology: Topology
    constants: Constants

    @property
    def network(self) -> Network:
        """The network, as far as its links are used."""
        return Network(self.topology, self.constants.link_efficiency)


@dataclass
class Estimate:
    """The estimate of one step.

    `path_ns` says where the time of the critical path comes from: what was recorded, the roofline,
    the network, fitted constants; they add up to `step_ns`. `work_ns` has the same by what is
    done. `program_ns` is when each program is done, with the ranks that run it.
    """

    step_ns: int
    world_size: int
    nodes: int
    path_ns: dict[str, int]
    work_ns: dict[str, int]
    program_ns: list[tuple[list[int], int]]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "step_ns": self.step_ns,
            "world_size": self.world_size,
            "nodes": self.nodes,
            "path_ns": self.path_ns,
            "work_ns": self.work_ns,
            "programs": [{"ranks": ranks, "ends_ns": ns} for ranks, ns in self.program_ns],
        }


class Case:
    """A set as it is estimated: its graph, made once for any constants."""

    def __init__(self, copies: Copies, machine: Machine) -> None:
        self.copies = copies
        self.machine = machine
        # What was recorded on a host says for itself what it takes to launch.
        recorded = any(
            trace.nodes.attributes.dense("is_cpu_op", False, np.bool_).any()
            for trace in copies.traces
        )
        self.graph: Graph = graph_of(copies, host=machine.constants.host and not recorded)
        self._traffic = Traffic(copies, machine.network)

    def costs(self, constants: Constants | None = None) -> Costs:
        """What the tasks take, with the machine's constants or others."""
        return costs_of(
            self.graph.tasks,
            self.machine.device,
            self._traffic,
            constants or self.machine.constants,
        )

    def run(self, costs: Costs | None = None) -> Run:
        """Replay the graph."""
        return run_graph(self.graph, costs or self.costs())

    def estimate(self) -> Estimate:
        """Replay the graph, and say where the time comes from."""
        costs = self.costs()
        done = self.run(costs)
        by_source = done.device @ costs.device
        by_source[Source.FITTED] += done.host @ costs.host
        work: Counter[str] = Counter()
        took = done.device * costs.device.sum(1)
        for task, ns in zip(self.graph.tasks, took.tolist(), strict=True):
            work[what_it_is(task)] += round(ns)
        work["launches"] = round(float(done.host @ costs.host))
        ends = zip(self.copies.programs, done.program_ns, strict=True)
        return Estimate(
            done.step_ns, self.copies.world_size, self.graph.nodes,
            {word: round(ns) for word, ns in zip(WORDS, by_source.tolist(), strict=True)},
            {what: ns for what, ns in work.most_common() if ns},
            [(ranks, ns) for ranks, ns in ends],
        )  # fmt: skip


def what_it_is(task: Task) -> str:
    """What a task is, in words for people."""
    if task.type == NodeType.COMM_COLL:
        word = "collective" if task.collective is None else task.collective.name.lower()
        return f"{word} ({task.family})" if task.family else word
    if task.type in (NodeType.COMM_SEND, NodeType.COMM_RECV):
        return "messages"
    if task.op_type == "attention":
        return "attention"
    if task.flops:
        return "matrix products"
    return task.op_type or "other"


def estimate_plan(plan: Plan, machine: Machine) -> Estimate:
    """The estimate of a plan, without writing its set."""
    return case_of_plan(plan, machine).estimate()


def case_of_plan(plan: Plan, machine: Machine) -> Case:
    """A plan as it is estimated."""
    return Case(copies_of_workload(plan.workload(), program_of_plan(plan)), machine)
