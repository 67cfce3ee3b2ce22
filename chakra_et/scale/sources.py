"""The ranks of a set that is to grow: what each of them tells, read once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.errors import ChakraError
from chakra_et.files import read
from chakra_et.model import Metadata, ProcessGroup, Trace, TraceSet
from chakra_et.scale.calls import Calls, groups_of, read_calls
from chakra_et.search import trace_files

_STEP: Final = "ProfilerStep"
_WRAPPERS: Final = {
    "DistributedDataParallel": "DistributedDataParallel",
    "FullyShardedDataParallel": "FullyShardedDataParallel",
    "FSDP": "FullyShardedDataParallel",
}
_OF_THE_RANK: Final = ("pg_name", "comm_src", "comm_dst")
_SHOWN: Final = 5


@dataclass(frozen=True)
class Source:
    """One rank of the set: where its file is, and what it says of itself and the others.

    `steps` counts the training steps that it recorded, `wrappers` names the data-parallel wrappers
    that ran. `content` is equal for ranks that do the same, but for groups and peers.
    """

    rank: int
    path: Path
    metadata: Metadata
    groups: list[ProcessGroup]
    calls: Calls
    steps: int
    wrappers: tuple[str, ...]
    content: bytes
    nodes: int

    def trace(self) -> Trace:
        """The whole trace, from its file."""
        return read(self.path)


def read_sources(path: Path, step: Callable[[int, int], None]) -> list[Source]:
    """All ranks of a set, from 0 on. Raises ChakraError where one is missing or too many."""
    files = trace_files(path)
    sources: dict[int, Source] = {}
    for done, (named, file) in enumerate(sorted(files.items())):
        step(done, len(files))
        trace = read(file)
        rank = named if trace.rank is None else trace.rank
        if trace.world_size not in (None, len(files)):
            raise _incomplete(path, sorted(files), trace.world_size)
        if rank in sources or not 0 <= rank < len(files):
            raise ChakraError(
                f"this is rank {rank}, of {len(files)} files"
                + " with another one" * (rank in sources),
                path=file,
                remedy="Number the ranks from 0 without gaps, in names and in metadata.",
            )
        sources[rank] = source_of(trace, rank, len(files), file)
    return [sources[rank] for rank in sorted(sources)]


def sources_of(traces: TraceSet) -> list[Source]:
    """What the traces of all ranks of a run say, which are in memory: for questions alone.

    Raises ChakraError where groups or peers cannot be told.
    """
    return [
        source_of(trace, rank, len(traces), Path(f"rank {rank}")) for rank, trace in traces.items()
    ]


def source_of(trace: Trace, rank: int, world_size: int, path: Path) -> Source:
    """What the trace of a rank says. Raises ChakraError where groups or peers cannot be told."""
    used = [trace.nodes.names[code] for code in np.unique(trace.nodes.name_code).tolist()]
    wrappers = {called for word, called in _WRAPPERS.items() if any(word in name for name in used)}
    return Source(
        rank=rank,
        path=path,
        metadata=trace.metadata,
        groups=[group for group in groups_of(trace, rank, path) if rank in group.ranks],
        calls=read_calls(trace, rank, world_size, path),
        steps=max(1, sum(name.startswith(_STEP) for name in used)),
        wrappers=tuple(sorted(wrappers)),
        content=_content(trace),
        nodes=len(trace.nodes),
    )


def _incomplete(path: Path, ranks: list[int], world_size: int) -> ChakraError:
    """The error for a set of which ranks are missing, or that has too many."""
    last = min(world_size, len(ranks) + _SHOWN + 1)
    missing = sorted(set(range(last)) - set(ranks))
    what = f"rank {_listed(missing)} missing" if missing else "too many"
    return ChakraError(
        f"{len(ranks)} of {world_size} ranks are here, {what}",
        path=path,
        remedy="All ranks of the run are needed, as each may have a role of its own.",
    )


def _listed(ranks: list[int]) -> str:
    return ", ".join(map(str, ranks[:_SHOWN])) + ", …" * (len(ranks) > _SHOWN)


def _content(trace: Trace) -> bytes:
    """A digest of nodes and edges, without what ranks that do the same have to themselves."""
    digest = hashlib.sha256()
    nodes, table = trace.nodes, trace.nodes.attributes
    for column in (
        nodes.id, nodes.type, nodes.name_code, nodes.start_ns, nodes.duration_ns, nodes.input_code,
        nodes.output_code, nodes.exact_start, nodes.exact_duration, table.layout,
        trace.edges.offsets, trace.edges.source, trace.edges.kind, trace.edges.inferred,
    ):  # fmt: skip
        digest.update(column.tobytes() + b"|")
    digest.update(_bytes([nodes.names, table.layouts, sorted(nodes.extra.items())]))
    digest.update(_bytes([list(text) for text in nodes.texts]))
    for found in table.columns:
        digest.update(repr(found.key).encode() + found.rows.tobytes())
        if found.key.name not in _OF_THE_RANK:
            digest.update(_values(found.values))
    return digest.digest()


def _values(values: Any) -> bytes:
    return values.tobytes() if isinstance(values, np.ndarray) else _bytes(values)


def _bytes(values: Iterable[Any]) -> bytes:
    """Values that are equal for equal ones, texts with odd bytes included."""
    try:
        return msgspec.msgpack.encode(list(values))
    except (TypeError, UnicodeEncodeError):
        return repr(list(values)).encode("utf-8", "surrogateescape")
