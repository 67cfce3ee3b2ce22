"""The graphs of all ranks as one."""

from __future__ import annotations

import numpy as np

from chakra_et.columns import Rows
from chakra_et.validators.cycles import cycles
from chakra_et.validators.messages import matched_messages
from chakra_et.validators.sequences import Sequence, sequences
from chakra_et.validators.view import RunView


def complete_groups(run: RunView) -> list[list[Sequence]]:
    """Groups of whose collectives every rank has as many as the others."""
    return [group for group in sequences(run).values() if len({len(s.rows) for s in group}) == 1]


class Joined:
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
        self.hubs: dict[int, list[tuple[Rows, Rows]]] = {rank: [] for rank in self.ranks}
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
            self.hubs[s.rank].append((s.rows, hubs))
            hub_of = np.full(len(s.view.nodes), -1, np.int64)
            hub_of[s.rows] = hubs
            edges = np.flatnonzero(s.view.sound_edges & (hub_of[s.view.target] >= 0))
            self._add(s.view.source[edges] + first, hub_of[s.view.target[edges]])

    def run_one_by_one(self, run: RunView) -> None:
        """Let each collective of a rank begin after the one of the next lower id has ended."""
        for rank, parts in self.hubs.items():
            if parts:
                rows = np.concatenate([rows for rows, _ in parts])
                hubs = np.concatenate([hubs for _, hubs in parts])
                order = np.argsort(run.views[rank].nodes.id[rows], kind="stable")
                self._add(rows[order][:-1] + self.first[rank], hubs[order][1:])

    def circles(self) -> list[list[int]]:
        """The shortest circle of each knot."""
        return cycles(self.count, *self.edges())

    def edges(self) -> tuple[Rows, Rows]:
        """Source and target of every edge."""
        return np.concatenate(self._source), np.concatenate(self._target)

    def place(self, row: int) -> tuple[int, int]:
        """Rank and row of a node."""
        rank = max((r for r in self.ranks if self.first[r] <= row), key=self.first.__getitem__)
        return rank, row - self.first[rank]
