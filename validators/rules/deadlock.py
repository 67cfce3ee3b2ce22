"""Rules about ranks that hold each other up."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.definitions import NodeType
from chakra_et.validators.cycles import cycles
from chakra_et.validators.finding import NOTHING, Finding, Hits, shortened
from chakra_et.validators.messages import matched_messages
from chakra_et.validators.rule import run_rule
from chakra_et.validators.sequences import Sequence, sequences
from chakra_et.validators.view import Rows, RunView

_SHOWN: Final = 6


@run_rule(
    "ET510",
    "Ranks wait for each other in a circle.",
    why="A receive before the send that the other rank waits for: nobody goes on, and ASTRA-sim "
    "ends with exit code 0 and says nothing.",
    cure="Let one of the ranks send first, or drop the edge that orders what was not in order.",
    kin="ET105 ET106 ET502 ET503 ET505",
)
def deadlock(run: RunView) -> Hits:
    """Cycles over several ranks: by edges, by messages, and by collectives of several groups."""
    groups = _complete_groups(run)
    sides = (NodeType.COMM_SEND, NodeType.COMM_RECV)
    if len(groups) < 2 and not any(len(v.of_type(*sides)) for v in run.views.values()):
        return NOTHING
    joined = _Joined(run, groups)
    return Hits.of([_finding(run, joined, rows) for rows in joined.circles()])


@run_rule(
    "ET719",
    "Ranks may issue collectives of two groups in different orders.",
    why="ASTRA-sim runs one collective of a rank at a time, of those that are ready the one of "
    "least id: one rank holds its place for a group, another for the other group.",
    cure="Add an edge between the two on every rank, so that all run them in one order.",
    kin="ET510 ET503",
)
def orders_of_groups(run: RunView) -> Hits:
    """Circles that arise if each rank runs its collectives one by one, by their ids."""
    groups = _complete_groups(run)
    if len(groups) < 2:
        return NOTHING
    joined = _Joined(run, groups)
    if joined.circles():
        return NOTHING  # ET510 speaks of those.
    joined.run_one_by_one(run)
    return Hits.of([_finding(run, joined, rows) for rows in joined.circles()])


def _complete_groups(run: RunView) -> list[list[Sequence]]:
    """Groups of whose collectives every rank has as many as the others."""
    return [group for group in sequences(run).values() if len({len(s.rows) for s in group}) == 1]


class _Joined:
    """The graphs of all ranks as one; a collective is a place that all its members pass at once."""

    def __init__(self, run: RunView, groups: list[list[Sequence]]) -> None:
        self.ranks = list(run.views)
        sizes = [len(view.nodes) for view in run.views.values()]
        self.first = dict(zip(self.ranks, np.cumsum([0, *sizes]).tolist(), strict=False))
        self.nodes = self.count = sum(sizes)
        self._source: list[Rows] = []
        self._target: list[Rows] = []
        for rank, view in run.views.items():
            sound = view.sound_edges.copy()
            # What a rank holds up by itself is the affair of the rules about one trace.
            sound[np.isin(view.target, view.held_up)] = False
            self._add(view.source[sound] + self.first[rank], view.target[sound] + self.first[rank])
        self._hubs: dict[int, list[tuple[Rows, Rows]]] = {rank: [] for rank in self.ranks}
        self._add_messages(run)
        for group in groups:
            self._add_collectives(group)

    def _add(self, source: Rows, target: Rows) -> None:
        self._source.append(source)
        self._target.append(target)

    def _add_messages(self, run: RunView) -> None:
        """A receive waits for its send."""
        found = matched_messages(run)
        first = np.array([self.first[rank] for rank in self.ranks], np.int64)
        place = {rank: i for i, rank in enumerate(self.ranks)}
        for (send_rank, receive_rank), (sends, receives) in found.items():
            self._add(sends + first[place[send_rank]], receives + first[place[receive_rank]])

    def _add_collectives(self, group: list[Sequence]) -> None:
        """Each member of a collective waits for whatever the others wait for."""
        hubs = np.arange(self.count, self.count + len(group[0].rows))
        self.count += len(hubs)
        for s in group:
            first = self.first[s.rank]
            self._add(hubs, s.rows + first)
            self._hubs[s.rank].append((s.rows, hubs))
            hub_of = np.full(len(s.view.nodes), -1, np.int64)
            hub_of[s.rows] = hubs
            edges = np.flatnonzero(s.view.sound_edges & (hub_of[s.view.target] >= 0))
            self._add(s.view.source[edges] + first, hub_of[s.view.target[edges]])

    def run_one_by_one(self, run: RunView) -> None:
        """Let each collective of a rank begin after the one of the next lower id has ended."""
        for rank, parts in self._hubs.items():
            if parts:
                rows = np.concatenate([rows for rows, _ in parts])
                hubs = np.concatenate([hubs for _, hubs in parts])
                order = np.argsort(run.views[rank].nodes.id[rows], kind="stable")
                self._add(rows[order][:-1] + self.first[rank], hubs[order][1:])

    def circles(self) -> list[list[int]]:
        """The shortest circle of each knot."""
        source, target = np.concatenate(self._source), np.concatenate(self._target)
        return cycles(self.count, source, target)

    def place(self, row: int) -> tuple[int, int]:
        """Rank and row of a node."""
        rank = max((r for r in self.ranks if self.first[r] <= row), key=self.first.__getitem__)
        return rank, row - self.first[rank]


def _finding(run: RunView, joined: _Joined, rows: list[int]) -> Finding:
    places = [joined.place(row) for row in rows if row < joined.nodes]
    steps = [
        f"rank {rank} node {run.views[rank].nodes.id[row]} "
        f"{shortened(run.views[rank].name(row), 40)!r}"
        for rank, row in places
    ]
    if len(steps) > _SHOWN:
        steps[_SHOWN - 1 :] = [f"… {len(steps) - _SHOWN + 1} more …"]
    rank, row = places[0]
    return run.views[rank].at(row, " waits for ".join([*steps, steps[0]]))
