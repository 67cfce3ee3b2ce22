"""Who waits for whom: the answer to "why does nothing happen?"."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chakra_et.feeder.engine import Counts, Engine
from chakra_et.feeder.options import State
from chakra_et.shown import shown


class Blocker(NamedTuple):
    """A node that another one waits for; UNKNOWN if the trace does not hold it."""

    id: int
    name: str
    state: State


class Waiter(NamedTuple):
    """A node that waits, the first nodes that it waits for, and how many more there are."""

    id: int
    name: str
    waits_for: list[Blocker]
    more: int = 0


class Taken(NamedTuple):
    """A node that was handed out and is not done, and how many wait for it directly."""

    id: int
    name: str
    type: int
    waiters: int


@dataclass
class Blocked:
    """What waits for what. Lists hold the first few, by id.

    In `cycles` each node waits for the next one, and the last for the first. `missing` are pairs
    of a node and a parent that the trace does not hold.
    """

    counts: Counts
    taken: list[Taken] = field(default_factory=list)
    waiting: list[Waiter] = field(default_factory=list)
    cycles: list[list[int]] = field(default_factory=list)
    missing: list[tuple[int, int]] = field(default_factory=list)

    def __str__(self) -> str:
        counts = self.counts
        lines = [
            f"{counts.done} done, {counts.taken} taken, {counts.ready} ready, "
            f"{counts.waiting} waiting"
        ]
        for node in self.taken:
            lines.append(
                f"taken, not done: {_label(node)}, type {node.type}; {node.waiters} wait for it"
            )
        for waiter in self.waiting:
            others = ", ".join(f"{_label(b)} ({_state(b.state)})" for b in waiter.waits_for)
            more = f", and {waiter.more} more" if waiter.more else ""
            lines.append(f"{_label(waiter)} waits for {others}{more}")
        lines += map(_cycle_text, self.cycles)
        return "\n".join(lines) + "\n"


_LONGEST_NAME = 60
_LONGEST_CYCLE = 20


def _cycle_text(cycle: list[int]) -> str:
    shown = list(map(str, cycle[:_LONGEST_CYCLE]))
    if len(cycle) > _LONGEST_CYCLE:
        shown.append(f"{len(cycle) - _LONGEST_CYCLE} more")
    return "cycle: " + " waits for ".join([*shown, str(cycle[0])])


def _label(node: Blocker | Waiter | Taken) -> str:
    name = shown(node.name)
    if len(name) > _LONGEST_NAME:
        name = name[: _LONGEST_NAME - 3] + "..."
    return f'{node.id} "{name}"' if name else str(node.id)


def _state(state: State) -> str:
    return "not in the trace" if state is State.UNKNOWN else state.label


def find_blocked(engine: Engine, limit: int) -> Blocked:
    """Look at every node that waits."""
    report = Blocked(engine.counts())
    waiters: Counter[int] = Counter()
    waiting = engine.in_state(State.WAITING)
    for node_id in waiting:
        parents = dict.fromkeys(engine.gates(node_id))
        states = {parent: engine.state(parent) for parent in parents}
        open_ = {p: state for p, state in states.items() if state is not State.DONE}
        waiters.update(p for p, state in open_.items() if state is State.TAKEN)
        absent = [(node_id, p) for p, state in open_.items() if state is State.UNKNOWN]
        report.missing += absent[: max(0, limit - len(report.missing))]
        if len(report.waiting) < limit:
            first = list(open_.items())[:limit]
            blockers = [Blocker(p, _name(engine, p), state) for p, state in first]
            more = len(open_) - len(first)
            report.waiting.append(Waiter(node_id, _name(engine, node_id), blockers, more))
    report.cycles = _cycles(engine, waiting, limit)
    for node_id in engine.in_state(State.TAKEN)[:limit]:
        node = engine.node(node_id)
        report.taken.append(Taken(node_id, node.name, int(node.type), waiters[node_id]))
    return report


def _name(engine: Engine, node_id: int) -> str:
    node: Any = engine.node(node_id)
    return "" if node is None else str(node.name)


def _cycles(engine: Engine, waiting: list[int], limit: int) -> list[list[int]]:
    """Cycles among waiting nodes, by depth-first search with a stack of its own."""
    cycles: list[list[int]] = []
    finished: set[int] = set()
    for root in waiting:
        if root in finished or len(cycles) >= limit:
            continue
        path = {root: iter(engine.gates(root))}  # in order, from the root
        while path and len(cycles) < limit:
            top = next(reversed(path))
            for parent in path[top]:
                if parent in path:
                    nodes = list(path)
                    cycle = nodes[nodes.index(parent) :]
                    first = cycle.index(min(cycle))
                    cycles.append(cycle[first:] + cycle[:first])
                    break
                if parent not in finished and engine.state(parent) is State.WAITING:
                    path[parent] = iter(engine.gates(parent))
                    break
            else:
                finished.add(top)
                del path[top]
    return cycles
