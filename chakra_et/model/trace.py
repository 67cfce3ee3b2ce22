"""One rank's graph."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import Kind
from chakra_et.model.as_frames import AsFrames
from chakra_et.model.edges import Edges
from chakra_et.model.groups import ProcessGroup, decode_groups, encode_groups
from chakra_et.model.metadata import Metadata
from chakra_et.model.nodes import Node, Nodes


class Trace(AsFrames):
    """The operations of one rank and what each of them waits for.

    `nodes` holds the columns, `edges` the dependencies by node row, `metadata` what the file says
    of the whole. Times are integer nanoseconds, sizes bytes.
    """

    def __init__(self, nodes: Nodes, edges: Edges, metadata: Metadata | None = None) -> None:
        if len(edges.offsets) != len(nodes) + 1:
            raise ValueError(f"edges for {len(edges.offsets) - 1} nodes, but {len(nodes)} nodes")
        self.nodes = nodes
        self.edges = edges
        self.metadata = Metadata() if metadata is None else metadata
        nodes._trace = self

    def __repr__(self) -> str:
        rank = "" if self.rank is None else f" of rank {self.rank}"
        return f"<Trace{rank}: {len(self.nodes)} nodes, {len(self.edges)} edges>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        return (
            self.metadata == other.metadata
            and self.edges == other.edges
            and self.nodes.same(other.nodes)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def rank(self) -> int | None:
        """The rank that this trace belongs to; None if the trace does not say."""
        return self._whole("rank")

    @property
    def world_size(self) -> int | None:
        """How many ranks the run had; None if the trace does not say."""
        return self._whole("world_size")

    def _whole(self, name: str) -> int | None:
        value = self.metadata.get(name)
        return int(value) if isinstance(value, int) else None

    @property
    def groups(self) -> tuple[ProcessGroup, ...]:
        """The process groups that this rank knows, from the metadata. Raises GroupsError."""
        text = self.metadata.get("process_groups")
        return decode_groups(text) if isinstance(text, str) else ()

    @groups.setter
    def groups(self, groups: Iterable[ProcessGroup]) -> None:
        self.metadata.set("process_groups", Kind.STRING, encode_groups(list(groups)))

    def _by_rank(self) -> dict[int, Trace]:
        return {self.rank or 0: self}

    def node(self, node_id: int) -> Node:
        """The node with this id. Raises KeyError if there is none."""
        return self.nodes.by_id(node_id)

    def source_rows(self) -> npt.NDArray[np.int64]:
        """The node row that each edge comes from, int64[number of edges]; -1 if no node has it."""
        return self.nodes.rows_of(self.edges.source)
