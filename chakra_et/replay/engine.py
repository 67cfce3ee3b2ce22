"""The engine: when each node starts and ends, given what it waits for and how long it takes.

The graph of a trace is complete, so that the start of a node is the latest end of what it waits
for, and no order of picking can change it. Nodes are visited as their last predecessor ends; each
node and each edge is touched once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.graph import Adjacency
from chakra_et.kernel import kernel


@dataclass
class Plan:
    """What the engine runs. One entry of each column for each node, times in ns.

    A node starts when all that it waits for has ended, `lag` later, but not before `release`.
    Edges lead from `source` to `target`. Rows from `real` on are the engine's own: joints that
    stand for a rendezvous or for an edge with a lag of its own; their durations may be negative.
    """

    duration: Rows
    lag: Rows
    release: Rows
    source: Rows
    target: Rows
    real: int

    def __len__(self) -> int:
        return len(self.duration)


@dataclass
class Times:
    """Start and end of each node of a plan; `done` is false for nodes on or behind a cycle.

    `found` holds pairs (device work, call) of targets that were found while running.
    """

    start: Rows
    end: Rows
    done: npt.NDArray[np.bool_]
    found: list[tuple[int, int]] = field(default_factory=list)


def run(plan: Plan) -> Times:
    """Run a plan, by the compiled kernel where it is. Takes one pass over nodes and edges."""
    module = kernel()
    if module is None:
        return _run_in_python(plan)
    found = module.replay(kernel_columns(plan, plan.release - plan.lag))
    if found is None:  # times do not fit into 64 bits
        return _run_in_python(plan)
    start, end, done, _ = found
    return Times(start, end, done.view(np.bool_))


def kernel_columns(plan: Plan, start: Rows) -> tuple[Rows, ...]:
    """A plan as the kernel takes it; `start` is what is known of starts, without lags."""
    columns = (plan.duration, plan.lag, start, plan.source, plan.target)
    return tuple(np.ascontiguousarray(column, np.int64) for column in columns)


def _run_in_python(plan: Plan) -> Times:
    count = len(plan)
    after = Adjacency.of(count, plan.source, plan.target)
    offsets, items = after.offsets.tolist(), after.items.tolist()
    waits = np.bincount(plan.target, minlength=count).tolist()
    # `start` holds the earliest start that is known so far, without the lag of nodes that wait.
    start = (plan.release - plan.lag).tolist()
    end = [0] * count
    lag, duration = plan.lag.tolist(), plan.duration.tolist()
    visited = [node for node in range(count) if waits[node] == 0]
    for node in visited:
        begin = start[node] = start[node] + lag[node]
        finish = end[node] = begin + duration[node]
        for follower in items[offsets[node] : offsets[node + 1]]:
            if start[follower] < finish:
                start[follower] = finish
            waits[follower] -= 1
            if not waits[follower]:
                visited.append(follower)
    done = np.zeros(count, np.bool_)
    done[visited] = True
    return Times(np.array(start, np.int64), np.array(end, np.int64), done)
