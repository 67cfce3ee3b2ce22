"""The graph that an estimate replays: one rank for each program, and the host that launches.

Copies of a rank meet each other at the same time, so a collective among copies alone is a node like
any other. Where programs meet, members wait for each other at a joint, as in `chakra_et.replay`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.definitions import NodeType
from chakra_et.errors import ChakraError
from chakra_et.estimate.copies import Copies
from chakra_et.estimate.table import Task, Tasks, tasks_of
from chakra_et.graph import edge_rows
from chakra_et.shown import several

NO_TASK = -1


@dataclass
class Graph:
    """Rows are nodes of all programs, then their launches by the host, then joints.

    `task[r]` says which of `tasks` a node or a joint is, or NO_TASK where it takes no time: what a
    member of a meeting takes, its joint takes. `launch[r]` is the task that a launch starts.
    `program[r]` is the program of a node. Edges lead from `source` to `target`.
    """

    tasks: list[Task]
    task: Rows
    launch: Rows
    program: Rows
    source: Rows
    target: Rows
    nodes: int

    def __len__(self) -> int:
        return len(self.task)


def graph_of(copies: Copies, *, host: bool) -> Graph:
    """The graph of all programs; with `host`, every node waits for its launch.

    Raises ChakraError where programs meet in a way that one rank for each cannot show, or where a
    message has no other end.
    """
    found = [tasks_of(t, ranks[0]) for t, ranks in zip(copies.traces, copies.programs, strict=True)]
    sizes = [len(trace.nodes) for trace in copies.traces]
    first = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    nodes = int(first[-1])
    bases = np.cumsum([0, *(len(one.tasks) for one in found)])
    task = np.concatenate([one.task_of + base for one, base in zip(found, bases, strict=False)])
    tasks = [task for one in found for task in one.tasks]
    program = np.repeat(np.arange(len(sizes)), sizes)
    edges = [edge_rows(trace) for trace in copies.traces]
    source = np.concatenate([e.source + f for e, f in zip(edges, first, strict=False)])
    target = np.concatenate([e.target + f for e, f in zip(edges, first, strict=False)])
    meetings = list(_meetings(copies, found, first))
    launches = nodes if host else 0
    joints = nodes + launches + np.arange(len(meetings))
    members = np.array([row for meeting in meetings for row in meeting], np.int64)
    joint_of = np.repeat(joints, [len(meeting) for meeting in meetings])
    ends = np.arange(nodes)
    ends[members] = joint_of
    parts = [(ends[source], target), (members, joint_of)]
    if host:
        parts += _launching(nodes, program, np.array([t.type for t in tasks])[task], ends)
    of_joint = task[[meeting[0] for meeting in meetings]] if meetings else task[:0]
    nothing = np.full(launches, NO_TASK, np.int64)
    of_node = task.copy()
    of_node[members] = NO_TASK
    return Graph(
        tasks,
        np.concatenate((of_node, nothing, of_joint)),
        np.concatenate((np.full(nodes, NO_TASK, np.int64), task[:launches], of_joint * 0 - 1)),
        program,
        np.concatenate([pair[0] for pair in parts]),
        np.concatenate([pair[1] for pair in parts]),
        nodes,
    )


def _launching(
    nodes: int, program: Rows, types: npt.NDArray[np.int64], ends: Rows
) -> list[tuple[Rows, Rows]]:
    """The host of each program: it launches its nodes in order, and waits for what it receives.

    A host that receives waits for the device, too, as Megatron's and DeepSpeed's pipelines do.
    """
    launch = nodes + np.arange(nodes)
    follows = np.flatnonzero(program[1:] == program[:-1])
    pairs = [(launch[follows], launch[follows + 1]), (launch, np.arange(nodes))]
    received = follows[types[follows] == NodeType.COMM_RECV]
    pairs.append((ends[received], launch[received + 1]))
    computed = np.where(types == NodeType.COMP, np.arange(nodes), -1)
    before = np.maximum.accumulate(computed)[received] if nodes else received
    same = (before >= 0) & (program[before] == program[received])
    pairs.append((ends[before[same]], launch[received[same] + 1]))
    return pairs


def _meetings(copies: Copies, found: list[Tasks], first: Rows) -> Iterator[list[int]]:
    """The rows that meet: both ends of each message, and one member of each program."""
    sends: dict[tuple[int, int, int], list[int]] = {}
    receives: dict[tuple[int, int, int], list[int]] = {}
    calls: dict[tuple[int, ...], dict[int, list[int]]] = {}
    for place, trace in enumerate(copies.traces):
        tasks = found[place]
        tags = trace.nodes.attributes.dense("comm_tag", 0, np.int64)
        wanted = np.array(
            [_meets(copies, place, task) for task in tasks.tasks], np.bool_
        )[tasks.task_of]  # fmt: skip
        for row in np.flatnonzero(wanted).tolist():
            task = tasks.tasks[tasks.task_of[row]]
            at = int(first[place]) + row
            if task.type == NodeType.COMM_COLL:
                calls.setdefault(task.group, {}).setdefault(place, []).append(at)
                continue
            sender, receiver = (_program(copies, rank) for rank in task.group)
            ends = sends if task.type == NodeType.COMM_SEND else receives
            ends.setdefault((sender, receiver, int(tags[row])), []).append(at)
    for key in {**sends, **receives}:
        here, there = sends.get(key, []), receives.get(key, [])
        if len(here) != len(there):
            raise _unmatched(
                f"{several(len(here), 'send', 'sends')} and "
                f"{several(len(there), 'receive', 'receives')} with tag {key[2]}"
            )
        yield from ([a, b] for a, b in zip(here, there, strict=True))
    for group, of_program in calls.items():
        programs = {_program(copies, rank) for rank in group}
        counts = {len(rows) for rows in of_program.values()}
        if set(of_program) != programs or len(counts) != 1:
            raise _unmatched(f"the collectives of group {list(group)[:8]}")
        yield from (list(rows) for rows in zip(*of_program.values(), strict=True))


def _meets(copies: Copies, place: int, task: Task) -> bool:
    """Whether nodes wait for another one: of another program, or for the other end of a message."""
    if task.type == NodeType.COMM_COLL:
        return any(_program(copies, rank) != place for rank in task.group)
    return task.type in (NodeType.COMM_SEND, NodeType.COMM_RECV)


def _program(copies: Copies, rank: int) -> int:
    try:
        return copies.program_of[rank]
    except KeyError:
        raise ChakraError(
            f"rank {rank} takes part, but has no trace", remedy="Name the traces of all ranks."
        ) from None


def _unmatched(what: str) -> ChakraError:
    return ChakraError(
        f"{what} have no counterpart on other ranks",
        remedy="chakra validate says which. Where manifest.json calls ranks copies of others, take "
        "it away to go rank by rank.",
    )
