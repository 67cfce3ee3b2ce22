"""What one rank's trace says of its communication: the distinct calls, and which nodes they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.definitions import NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import ProcessGroup, Trace
from chakra_et.validators.sequences import RECORDED_TIME, WORLD, issue_order
from chakra_et.validators.view import ABSENT, TraceView

GroupKey: TypeAlias = "tuple[str, tuple[int, ...]]"
"""A group by its name and its ranks: names alone may be those of one process."""
MESSAGES: Final = (NodeType.COMM_SEND, NodeType.COMM_RECV)
COMMUNICATION: Final = (*MESSAGES, NodeType.COMM_COLL)
_INTEGERS: Final = ("comm_type", "comm_size", "comm_tag", "comm_src", "comm_dst")


class Call(NamedTuple):
    """What nodes are that communicate alike; None for what they do not tell.

    `group` is None for what is of no group; `named` says that the nodes call it by its name. Host
    nodes that only name a group have no collective.
    """

    type: int
    group: GroupKey | None
    named: bool
    peer: int | None
    collective: int | None
    size_bytes: int | None
    tag: int | None
    phase: str


@dataclass(frozen=True)
class Calls:
    """The nodes that name a group or a peer: `rows` in the file, and the call of each.

    `order` lists places in `rows` in the order in which the calls were asked for; those of host
    nodes are left out.
    """

    calls: list[Call]
    rows: Rows
    call_of: Rows
    order: Rows


def read_calls(trace: Trace, rank: int, world_size: int, path: Path) -> Calls:
    """The calls of a trace. Raises ChakraError for a node whose group or peer cannot be told."""
    view = TraceView(trace, rank)
    named = view.present("pg_name")
    communicates = np.isin(view.nodes.type, COMMUNICATION) & ~view.present(RECORDED_TIME)
    rows = np.flatnonzero(communicates | named)
    ids = view.nodes.id
    guessed = rows[view.present("pg_candidates")[rows]]
    if len(guessed):
        raise ChakraError(
            "the trace does not tell which group this collective is of, but several candidates",
            path=path,
            place=f"node {ids[guessed[0]]}",
            remedy="Record with a PyTorch that names groups (2.3 or newer).",
        )
    texts: dict[str, int] = {}
    columns: list[Any] = [view.nodes.type[rows], named[rows]]
    columns += [_codes(view.texts(name)[rows], texts) for name in ("pg_name", "phase")]
    columns += [view.integers(name)[rows] for name in _INTEGERS]
    table = np.stack(columns, axis=1).astype(np.int64) if len(rows) else np.zeros((0, 9), np.int64)
    found, first, call_of = np.unique(table, axis=0, return_index=True, return_inverse=True)
    finder = _Finder(trace, rank, world_size, path, list(texts))
    calls = [
        finder.call(line, int(ids[rows[at]]))
        for line, at in zip(found.tolist(), first.tolist(), strict=True)
    ]
    asked = issue_order(view, rows[communicates[rows]])
    return Calls(calls, rows, call_of.ravel(), np.searchsorted(rows, asked))


def _codes(values: npt.NDArray[Any], known: dict[str, int]) -> Rows:
    """Texts as numbers: each distinct one is looked up once."""
    distinct, places = np.unique(values.astype(str), return_inverse=True)
    codes = [known.setdefault(text, len(known)) for text in distinct.tolist()]
    return np.array(codes, np.int64)[places.ravel()] if len(codes) else np.zeros(0, np.int64)


class _Finder:
    """Makes calls of rows of numbers."""

    def __init__(
        self, trace: Trace, rank: int, world_size: int, path: Path, texts: list[str]
    ) -> None:
        self._groups = {group.name: group for group in groups_of(trace, rank, path)}
        self._rank = rank
        self._everyone = tuple(range(world_size))
        self._path = path
        self._texts = texts

    def call(self, line: list[int], node: int) -> Call:
        type, named, name, phase, collective, size, tag, source, target = line
        peer = None
        if type in MESSAGES:
            peer = self._peer(target if type == NodeType.COMM_SEND else source, node)
        group = None
        if named or type == NodeType.COMM_COLL:
            group = self._group(self._texts[name], node)
        if type == NodeType.COMM_COLL and collective == ABSENT:
            raise self._error("a collective of no known type", node)
        told = [None if value == ABSENT else value for value in (collective, size, tag)]
        return Call(type, group, bool(named), peer, told[0], told[1], told[2], self._texts[phase])

    def _peer(self, peer: int, node: int) -> int:
        if peer == ABSENT:
            raise self._error("a message that does not tell its other end", node)
        if peer not in self._everyone or peer == self._rank:
            raise self._error(f"a message between rank {self._rank} and rank {peer}", node)
        return peer

    def _group(self, name: str, node: int) -> GroupKey:
        group = self._groups.get(name)
        if group is None and name not in WORLD:
            raise self._error(f"a collective of group {name!r}, which no table explains", node)
        if group is None or (not group.ranks and group.size in (0, len(self._everyone))):
            return name, self._everyone
        if not group.ranks or group.size not in (0, len(group.ranks)):
            raise self._error(f"group {name!r}, whose members are not all told", node)
        if self._rank not in group.ranks:
            raise self._error(f"a collective of group {name!r}, which has no such rank", node)
        return name, group.ranks

    def _error(self, problem: str, node: int) -> ChakraError:
        return ChakraError(
            problem,
            path=self._path,
            place=f"node {node}",
            remedy="See `chakra validate`, and mend the set first.",
        )


def groups_of(trace: Trace, rank: int, path: Path) -> list[ProcessGroup]:
    """The groups that a rank is in. Raises ChakraError where the table of them cannot be read."""
    try:
        groups = trace.groups
    except ValueError as error:
        raise ChakraError(
            f"the table of process groups cannot be read: {error}",
            path=path,
            place="process_groups",
            remedy="Convert the recording again.",
        ) from error
    return [group for group in groups if rank in group.ranks or not group.ranks]
