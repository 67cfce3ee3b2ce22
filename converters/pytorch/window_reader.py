"""Reading a window of a long host trace, without ever holding the rest.

The file is read twice: which ids the window has; and then the nodes with these ids, those that call
them, and those whose caller the file lacks. The framework numbers operations as they begin, and
writes a node when it returns: so the window of an annotation begins with its id, and what its
thread does next ends it. Of the rest there is a bit for each id. So cutting what was read gives
what cutting all gives.

Traces in which the meaning of a node depends on all others are read whole: those of several
processes or documents, of the flat layouts, with ids that are no numbers below 2**63.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from chakra_et.codes import distinct
from chakra_et.columns import Mask, Rows
from chakra_et.converters.pytorch.compiled import HostNodes, HostPiece
from chakra_et.converters.pytorch.forked import ROOTS
from chakra_et.converters.pytorch.host_columns import NestedColumns, codes_of
from chakra_et.converters.pytorch.layouts import NestedNode
from chakra_et.converters.pytorch.reader import (
    HEAD_BYTES,
    NESTED,
    finished,
    is_nested,
    read_host,
)
from chakra_et.graph.intervals import inside, union
from chakra_et.io.memory import collection_paused
from chakra_et.io.records import read_records
from chakra_et.io.repairs import Repairs
from chakra_et.io.source import head
from chakra_et.pool import Pool
from chakra_et.recording import HostTrace, IdSet
from chakra_et.recording.host_trace import NO_CALLER

Chosen: TypeAlias = Callable[[str], bool]
_Piece: TypeAlias = "list[NestedNode] | HostPiece"
_LIMIT: Final = 1 << 63
_ENDLESS: Final = _LIMIT - 2


class _NotApartError(Exception):
    """The trace has to be read whole."""


@collection_paused()
def read_window(path: str | Path, strict: bool, chosen: Chosen) -> HostTrace:
    """The part of a host trace that a window of the `chosen` annotations needs.

    What is not held counts as outside of the window. If nothing is in the window, there are only
    the names of all nodes, which an error can tell. Raises as `read_host` does.
    """
    start = head(path, HEAD_BYTES)
    if not is_nested(start):
        return read_host(path, strict=strict)
    sieve = _Sieve(chosen)
    try:
        seen = read_records(path, NESTED, partial(_Handed, sieve), strict=strict)
        if not sieve.begins:
            nothing = NestedColumns(seen.repairs)
            nothing.names = sieve.names
            return finished(path, start, seen, nothing)
        while True:
            read = read_records(path, NESTED, partial(_Sieved, sieve=sieve), strict=strict)
            if not sieve.lacks_callers():
                break
    except _NotApartError:
        return read_host(path, strict=strict)
    if len(seen.starts) > 1:
        return read_host(path, strict=strict)
    host = finished(path, start, read, read.columns)
    host.outside = read.columns.outside
    return host


class _Handed:
    """Hands pieces on, and keeps none."""

    def __init__(self, sieve: _Sieve, _: Repairs) -> None:
        self._sieve = sieve

    def add(self, piece: _Piece, /) -> None:
        self._sieve.find(_Looked(_taken(piece)))


def _taken(piece: _Piece) -> list[NestedNode] | HostNodes:
    """The nodes of a piece: the kernel holds none of them any longer."""
    return piece.take() if isinstance(piece, HostPiece) else piece


class _Looked:
    """Nodes as far as choosing a window needs them."""

    def __init__(self, piece: list[NestedNode] | HostNodes) -> None:
        if isinstance(piece, HostNodes):
            columns = piece.columns
            ids, parents, self.thread = columns["id"], columns["parent"], columns["tid"]
            self.names, self.name = piece.names, columns["name"]
        else:
            ids = _numbers([node.id for node in piece])
            parents = _numbers([node.ctrl_deps for node in piece])
            self.thread = np.array(list(map(_thread, piece)), np.int64)
            pool: Pool[str] = Pool()
            self.name = np.array([pool[node.name] for node in piece], np.int64)
            self.names = pool.in_order
        if len(ids) and max(int(ids.max()), int(parents.max())) >= _LIMIT:
            raise _NotApartError
        self.id, self.parent = ids.astype(np.int64), parents.astype(np.int64)

    def named(self, use: Callable[[str], bool]) -> Mask:
        """Which nodes have a name that is used."""
        return np.array([*map(use, self.names), False], np.bool_)[self.name]


def _numbers(values: list[int]) -> npt.NDArray[np.uint64]:
    try:
        return np.array(values, np.uint64)
    except OverflowError:
        raise _NotApartError from None


def _thread(node: NestedNode) -> int:
    told = next((attr.value for attr in node.attrs if attr.name == "tid"), 0)
    if type(told) is not int or abs(told) >= _LIMIT:
        raise _NotApartError
    return told


class _Sieve:
    """Which nodes of a host trace a window needs."""

    def __init__(self, chosen: Chosen) -> None:
        self._chosen = chosen
        self.begins: list[int] = []
        self._ends: list[int] = []
        self._open: list[tuple[int, int]] = []
        """Windows whose end was not found yet: place and thread."""
        self._roots, self._operations = IdSet(), IdSet()
        self._callers, self._held = IdSet(), IdSet()
        self.names: Pool[str] = Pool()

    def find(self, piece: _Looked) -> None:
        """Note which ids there are, and those with which windows begin and end."""
        for name in piece.names:
            self.names[name]
        roots = piece.named(lambda name: name.endswith(ROOTS))
        operations = piece.id[~roots]
        if len(distinct(operations)) < len(operations) or self._operations.has(operations).any():
            raise _NotApartError
        self._operations.add(operations)
        self._roots.add(piece.id[roots])
        self._open = [window for window in self._open if not self._close(piece, *window, 0)]
        for row in np.flatnonzero(piece.named(self._chosen)).tolist():
            window = len(self.begins), int(piece.thread[row])
            self.begins.append(int(piece.id[row]))
            self._ends.append(_ENDLESS)
            if not self._close(piece, *window, row + 1):
                self._open.append(window)

    def _close(self, piece: _Looked, window: int, thread: int, first: int) -> bool:
        """Whether the thread goes on, from a place on, with what is not inside of the window."""
        begin = self.begins[window]
        later = (piece.thread == thread) & (piece.id > begin) & (piece.parent < begin)
        rows = np.flatnonzero(later[first:])
        if len(rows):
            self._ends[window] = int(piece.id[first + rows[0]])
        return len(rows) > 0

    def holds(self, piece: _Looked) -> Mask:
        """Which nodes are held: what they are called by comes behind them."""
        begin, last = np.array(self.begins, np.int64), np.array(self._ends, np.int64)
        held = inside(*union(begin, last + 1), piece.id) | self._callers.has(piece.id)
        held |= (piece.parent != NO_CALLER) & ~self._known(piece.parent)
        count = -1
        while count != np.count_nonzero(held):
            count = int(np.count_nonzero(held))
            self._callers.add(piece.parent[held])
            held |= self._callers.has(piece.id)
        self._held.add(piece.id[held])
        return held

    def _known(self, ids: Rows) -> Mask:
        return self._operations.has(ids) | self._roots.has(ids)

    def lacks_callers(self) -> bool:
        """Whether callers stand before what they call, so that they have to be looked for again."""
        return bool(self._known(self._callers.without(self._held)).any())


class _Sieved(NestedColumns):
    """Columns that take in what a window needs, and count the rest."""

    def __init__(self, repairs: Repairs, sieve: _Sieve) -> None:
        super().__init__(repairs)
        self._sieve = sieve
        self.outside = 0

    def add(self, piece: _Piece, /) -> None:
        """Take in some nodes."""
        nodes = _taken(piece)
        held = self._sieve.holds(_Looked(nodes))
        self.outside += int(np.count_nonzero(~held))
        if isinstance(nodes, HostNodes):
            nodes = nodes.select(held)
            self._add_columns(nodes, codes_of(self.texts, nodes.texts))
        else:
            super().add([nodes[row] for row in np.flatnonzero(held).tolist()])
