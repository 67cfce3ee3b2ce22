"""Running a graph with given times, and the path that decides how long it takes."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from chakra_et.columns import Rows
from chakra_et.errors import ChakraError
from chakra_et.estimate.costs import Costs
from chakra_et.estimate.graph import NO_TASK, Graph
from chakra_et.graph import Adjacency
from chakra_et.io.memory import collection_paused
from chakra_et.replay.engine import Plan, Times, run


class Run:
    """The outcome: how long the step takes, and when each program is done, in ns."""

    def __init__(self, graph: Graph, times: Times) -> None:
        self._graph = graph
        self._times = times
        self.step_ns = int(times.end.max(initial=0))

    @cached_property
    def program_ns(self) -> list[int]:
        """When the last node of each program ends."""
        program = self._graph.program
        ends = np.zeros(int(program.max(initial=-1)) + 1, np.int64)
        np.maximum.at(ends, program, self._times.end[: self._graph.nodes])
        found: list[int] = ends.tolist()
        return found

    @cached_property
    def device(self) -> Rows:
        """How often the critical path passes each task."""
        return self._passed(self._graph.task)

    @cached_property
    def host(self) -> Rows:
        """How often the critical path passes the launch of each task."""
        return self._passed(self._graph.launch)

    def _passed(self, of: Rows) -> Rows:
        tasks = of[self._path]
        return np.bincount(tasks[tasks != NO_TASK], minlength=len(self._graph.tasks))

    @cached_property
    def _path(self) -> Rows:
        return _critical(self._graph, self._times.start, self._times.end)


def run_graph(graph: Graph, costs: Costs) -> Run:
    """Run a graph. Raises ChakraError where nodes wait for each other in a circle."""
    duration = np.zeros(len(graph), np.int64)
    for of, took in ((graph.task, costs.device.sum(1)), (graph.launch, costs.host)):
        rows = np.flatnonzero(of != NO_TASK)
        duration[rows] += np.rint(took).astype(np.int64)[of[rows]]
    nothing = np.zeros(len(graph), np.int64)
    plan = Plan(duration, nothing, nothing, graph.source, graph.target, graph.nodes)
    with collection_paused():
        times = run(plan)
    if not times.done.all():
        raise ChakraError(
            "nodes wait for each other in a circle", remedy="chakra validate says which."
        )
    return Run(graph, times)


def _critical(graph: Graph, start: Rows, end: Rows) -> Rows:
    """The rows of a path from the start to the last end, without a gap."""
    if not len(graph):
        return np.zeros(0, np.int64)
    before = Adjacency.of(len(graph), graph.target, graph.source)
    row = int(np.argmax(end))
    path = [row]
    while start[row] > 0:
        waited = before.at(row)
        row = int(waited[np.argmax(end[waited])])
        path.append(row)
    return np.array(path, np.int64)
