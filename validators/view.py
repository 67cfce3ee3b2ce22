"""A trace, or the traces of a run, with the columns that many rules want, each made once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import Kind, NodeType
from chakra_et.model import UNKNOWN_NS, Edges, Nodes, ProcessGroup, Trace
from chakra_et.model.attribute_values import INTEGER_KINDS
from chakra_et.validators.cycles import held_up
from chakra_et.validators.finding import Finding, Hits

ABSENT: Final = int(np.iinfo(np.int64).min)
"""Stands for an integer attribute that a node does not carry."""


class TraceView:
    """One rank's trace as rules see it."""

    def __init__(self, trace: Trace, rank: int | None = None, path: str | None = None) -> None:
        self.trace = trace
        self.rank = trace.rank if rank is None else rank
        self.path = path
        self.named = True
        """Whether somebody asked for it; else it is there for what ranks have to do with it."""

    @property
    def nodes(self) -> Nodes:
        """The columns of the nodes."""
        return self.trace.nodes

    @property
    def edges(self) -> Edges:
        """The edges, by row of the node that waits."""
        return self.trace.edges

    @cached_property
    def target(self) -> Rows:
        """The row that each edge leads to."""
        return self.edges.target

    @cached_property
    def source(self) -> Rows:
        """The row that each edge comes from; -1 where no node has the id."""
        return self.trace.source_rows()

    @cached_property
    def sound_edges(self) -> Mask:
        """Edges whose both ends exist and differ."""
        return np.asarray((self.source >= 0) & (self.source != self.target))

    @cached_property
    def held_up(self) -> Rows:
        """Rows on a cycle of edges whose both ends exist and differ, and all behind them."""
        source, target = self.source[self.sound_edges], self.target[self.sound_edges]
        earlier = self.nodes.id[source] < self.nodes.id[target]
        if not earlier.all():
            before, after = self.begin_ns[source], self.begin_ns[target]
            earlier = (before < after) | ((before == after) & earlier)
        if bool(earlier.all()):
            # Ids or starts prove that there is no cycle.
            return np.zeros(0, np.int64)
        return held_up(len(self.nodes), source, target)

    def of_type(self, *types: NodeType) -> Rows:
        """Rows of the nodes of these types."""
        return np.flatnonzero(np.isin(self.nodes.type, types))

    @cached_property
    def collectives(self) -> Rows:
        """Rows of the collectives."""
        return self.of_type(NodeType.COMM_COLL)

    @cached_property
    def communication(self) -> Rows:
        """Rows of collectives, sends and receives."""
        return self.of_type(NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV)

    def integers(self, name: str) -> npt.NDArray[np.int64]:
        """An attribute of every node in any kind of integer or as a boolean; else `ABSENT`."""
        column = np.full(len(self.nodes), ABSENT, np.int64)
        for found in self.nodes.attributes.named(name):
            if found.key.kind in INTEGER_KINDS or found.key.kind is Kind.BOOL:
                column[found.rows] = np.asarray(found.values).astype(np.int64)
        return column

    def texts(self, name: str, default: str = "") -> npt.NDArray[np.object_]:
        """A text attribute of every node."""
        column = np.full(len(self.nodes), default, object)
        for found in self.nodes.attributes.named(name):
            if found.key.kind is Kind.STRING:
                column[found.rows] = np.fromiter(found.values, object, len(found.rows))
        return column

    def present(self, name: str) -> Mask:
        """Which nodes carry an attribute, in whatever kind."""
        return self.nodes.attributes.present(name)

    @cached_property
    def timed(self) -> Mask:
        """Nodes whose start is known."""
        return np.asarray(self.nodes.start_ns != UNKNOWN_NS)

    @cached_property
    def own_start_ns(self) -> Rows:
        """When each node's own time begins: at its start, unless the node tells otherwise."""
        own = self.integers("own_start_ns")
        return np.where(own == ABSENT, self.nodes.start_ns, own)

    @cached_property
    def begin_ns(self) -> Rows:
        """When each node begins to run: a call that waits is made before its wait has ended."""
        return np.maximum(self.nodes.start_ns, self.own_start_ns)

    @cached_property
    def on_host(self) -> Mask:
        """Nodes that say of themselves that they run on a host processor."""
        return np.asarray(self.integers("is_cpu_op") == 1)

    @cached_property
    def groups(self) -> tuple[ProcessGroup, ...]:
        """The process groups; none where the text of them cannot be read."""
        try:
            return self.trace.groups
        except ValueError:
            return ()

    @cached_property
    def group_of(self) -> dict[str, ProcessGroup]:
        """The process groups by name."""
        return {group.name: group for group in self.groups}

    def name(self, row: int) -> str:
        """The name of a node."""
        return self.nodes.names[int(self.nodes.name_code[row])]

    def at(self, row: int, evidence: str) -> Finding:
        """A finding at a node."""
        return Finding(evidence, self.rank, int(self.nodes.id[row]), self.name(row), self.path)

    def hits(self, rows: npt.NDArray[Any], evidence: str | Callable[[int], str]) -> Hits:
        """A hit at each of `rows`; `evidence` is one text, or made from the place in `rows`."""
        say = evidence if callable(evidence) else lambda _: evidence
        return Hits(len(rows), lambda i: self.at(int(rows[i]), say(i)))

    def lacking(self, rows: npt.NDArray[Any], name: str) -> Hits:
        """A hit at each of `rows` that lacks an attribute."""
        return self.hits(rows[~self.present(name)[rows]], f"no {name}")

    def whole(self, evidence: str) -> Hits:
        """One hit about the trace as a whole."""
        return Hits.of([Finding(evidence, self.rank, path=self.path)])


class RunView:
    """The traces of a run by rank.

    `doubled` tells files that claim a rank already taken, `group_file` the path and the content of
    comm_groups.json beside the files, `from_files` whether the traces come from files at all.
    """

    def __init__(
        self,
        views: Mapping[int, TraceView],
        doubled: list[tuple[int, str]] | None = None,
        group_file: tuple[str, Any] | None = None,
        from_files: bool = False,
    ) -> None:
        self.views = {rank: views[rank] for rank in sorted(views)}
        self.doubled = doubled or []
        self.group_file = group_file
        self.from_files = from_files

    @property
    def named(self) -> list[TraceView]:
        """The traces that somebody asked for."""
        return [view for view in self.views.values() if view.named]

    @cached_property
    def world_size(self) -> int | None:
        """How many ranks the run had, by what the traces say; None if none says."""
        said = [v.trace.world_size for v in self.views.values() if v.trace.world_size is not None]
        return max(said) if said else None

    @cached_property
    def usual_world_size(self) -> int | None:
        """How many ranks most traces say the run had; None if none says."""
        said = Counter(v.trace.world_size for v in self.views.values())
        del said[None]
        return said.most_common(1)[0][0] if said else None

    def is_lone(self, view: TraceView, name: str) -> bool:
        """Whether a group has one member, as its rank knows it, or else the others."""
        group = view.group_of.get(name)
        if group is not None and group.ranks:
            return max(len(group.ranks), group.size) == 1
        return len(self.members(name)) == 1

    def members(self, name: str) -> tuple[int, ...]:
        """The ranks of a group by the fullest account; empty if no trace tells."""
        found = [v.group_of[name].ranks for v in self.views.values() if name in v.group_of]
        return max(found, key=len, default=())
