"""The traces of all ranks of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chakra_et.model.as_frames import AsFrames
from chakra_et.model.groups import ProcessGroup
from chakra_et.model.trace import Trace


class TraceSet(AsFrames, Mapping[int, Trace]):
    """Traces by rank, in ascending order, with the group table that they share."""

    def __init__(self, traces: Mapping[int, Trace]) -> None:
        self._traces = {rank: traces[rank] for rank in sorted(traces)}

    def __getitem__(self, rank: int) -> Trace:
        return self._traces[rank]

    def __iter__(self) -> Iterator[int]:
        return iter(self._traces)

    def __len__(self) -> int:
        return len(self._traces)

    def __repr__(self) -> str:
        nodes = sum(len(trace.nodes) for trace in self._traces.values())
        return f"<TraceSet: {len(self)} ranks, {nodes} nodes, {len(self.groups)} groups>"

    def _by_rank(self) -> TraceSet:
        return self

    @property
    def world_size(self) -> int:
        """How many ranks the run had, as far as the traces say."""
        said = [t.world_size for t in self._traces.values() if t.world_size is not None]
        return max([len(self), *said, *(rank + 1 for rank in self._traces)])

    @property
    def groups(self) -> tuple[ProcessGroup, ...]:
        """Every process group that some rank knows; where ranks differ, the fullest account.

        Names are per process in PyTorch, so groups of one name with different members stay apart.
        """
        found: dict[tuple[str, tuple[int, ...]], ProcessGroup] = {}
        for trace in self._traces.values():
            for group in trace.groups:
                found.setdefault((group.name, group.ranks), group)
        known = {name for name, ranks in found if ranks}
        return tuple(g for (name, ranks), g in found.items() if ranks or name not in known)
