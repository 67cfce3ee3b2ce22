"""Hands out the nodes of a trace whose dependencies are done."""

from __future__ import annotations

import gzip
import io
import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Final

import zstandard

from chakra_et.converters.et.decoder import decode_metadata
from chakra_et.converters.et.wire import WireError
from chakra_et.converters.format import Head
from chakra_et.errors import ChakraError
from chakra_et.feeder.blocked import Blocked, find_blocked
from chakra_et.feeder.engine import Counts, Engine
from chakra_et.feeder.errors import Code, FeederError
from chakra_et.feeder.graph import Graph
from chakra_et.feeder.node import HandedNode
from chakra_et.feeder.options import Next, Options, State, edge_kinds
from chakra_et.feeder.scan import scan
from chakra_et.feeder.table import FileTable, TraceTable
from chakra_et.feeder.window import Window
from chakra_et.files import read
from chakra_et.io.beginnings import is_zip
from chakra_et.io.source import blocks, head, read_all
from chakra_et.io.stream import BLOCK_BYTES
from chakra_et.model import EdgeKind, Metadata, Trace

Source = str | os.PathLike[str] | bytes | BinaryIO | Trace

_HEAD_BYTES: Final = 128
_COMPRESSED: Final = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


class Feeder:
    """Hands out nodes whose dependencies are done, in an order that is always the same.

        for node in Feeder("trace.0.et"):
            simulate(node)

    or, for a simulator with a clock of its own, `next()` or `ready()` and `take(id)`, then
    `done(id)` when the node has ended. A feeder belongs to one thread at a time.

    `source` is the path of an `.et` file (compressed or not), its bytes, a binary file or pipe, or
    a `Trace`. The keywords are those of `Options`; `gate` also takes names of edge kinds.
    """

    def __init__(
        self,
        source: Source,
        *,
        options: Options | None = None,
        gate: Iterable[EdgeKind | str] | None = None,
        **choices: Any,
    ) -> None:
        if gate is not None:
            choices["gate"] = edge_kinds(gate)
        self.options = replace(options or Options(), **choices)
        self.path = Path(source) if isinstance(source, (str, os.PathLike)) else None
        self._round = 0
        self._mapped: mmap.mmap | None = None
        self._engine, self._metadata = self._open(source)

    def __repr__(self) -> str:
        of = "" if self.path is None else f" of {self.path.name}"
        return f"<Feeder{of}: {self.counts()}>"

    def _open(self, source: Source) -> tuple[Engine, Metadata]:
        try:
            if self.path is not None and not self.options.window and is_json(self.path):
                source = read(self.path)
            if isinstance(source, Trace):
                if self.options.window:
                    problem = "a window needs a file: this trace is in memory"
                    raise FeederError(Code.INVALID_OPTION, problem)
                return Graph(TraceTable(source, self.options), self.options), source.metadata
            if self.options.window:
                window = Window(self._reopener(source), self.options)
                return window, _metadata(window.metadata)
            whole = _whole(source)
            self._mapped = whole if isinstance(whole, mmap.mmap) else None
            table = FileTable(scan(whole, self.options.max_record), self.options)
            return Graph(table, self.options), _metadata(table.metadata)
        except FeederError as error:
            raise self._named(error) from None
        except MemoryError:
            problem = "not enough memory for the trace"
            remedy = "Ask for a window of nodes: Feeder(path, window=100_000)."
            raise FeederError(Code.OUT_OF_MEMORY, problem, path=self.path, remedy=remedy) from None

    def _named(self, error: FeederError) -> FeederError:
        """The error with the file's name in its message."""
        if self.path is not None and error.path is None:
            error.path = self.path
            error.args = (str(error),)
        return error

    def _reopener(self, source: Source) -> Callable[[], Iterator[bytes]]:
        if isinstance(source, (str, os.PathLike)):
            path = os.fspath(source)
            return lambda: blocks(path)
        if isinstance(source, bytes):
            return lambda: _pieces(io.BytesIO(source))
        assert not isinstance(source, Trace)
        if self.options.repeat != 1:
            raise FeederError(Code.NOT_SEEKABLE, "a stream cannot be read again")
        unread = [source]

        def reopen() -> Iterator[bytes]:
            if not unread:
                raise FeederError(Code.NOT_SEEKABLE, "a stream cannot be read again")
            return _pieces(unread.pop())

        return reopen

    # Running.

    def __iter__(self) -> Iterator[HandedNode]:
        """Take node after node; each is done when the next is asked for.

        Raises FeederError, with the report of `blocked()`, if nodes are left in the end.
        """
        return chain.from_iterable(self._rounds())  # nothing is done here per node

    def _rounds(self) -> Iterator[Iterator[Any]]:
        while True:
            yield self._engine.run()
            if self._engine.stop is not Next.FINISHED:
                raise self._stuck()
            if not self._next_round():
                return

    def _stuck(self) -> FeederError:
        report = self.blocked()
        left = report.counts.held
        what = "none is ready" if not report.counts.taken else "some are taken and not done"
        return FeederError(
            Code.BLOCKED,
            f"{left} nodes are left, and {what}:\n{report}".rstrip(),
            other=left,
            path=self.path,
        )

    def next(self) -> tuple[Next, HandedNode | None]:
        """Take the first ready node: `(Next.NODE, node)`, or the reason why there is none."""
        answer, node = self._engine.next()
        if answer is Next.FINISHED and self._next_round():
            return self.next()
        return answer, node

    def ready(self, limit: int | None = None) -> list[int]:
        """Ids of the nodes that can be taken, in order."""
        return self._engine.ready(limit)

    def take(self, node_id: int) -> HandedNode:
        """Take a ready node, and return it."""
        node: HandedNode = self._engine.take(node_id)
        return node

    def take_many(self, limit: int) -> list[HandedNode]:
        """Take up to `limit` ready nodes; fewer when no more are ready."""
        nodes: list[HandedNode] = []
        while len(nodes) < limit:
            answer, node = self.next()
            if answer is not Next.NODE or node is None:
                break
            nodes.append(node)
        return nodes

    def done(self, node_id: int) -> None:
        """Finish a taken node: those that waited only for it become ready."""
        self._engine.done(node_id)
        if self._engine.finished:
            self._next_round()

    def push_back(self, node_id: int) -> None:
        """Give a taken node back: it is ready again."""
        self._engine.push_back(node_id)

    def _next_round(self) -> bool:
        if self.options.repeat and self._round + 1 >= self.options.repeat:
            return False
        if self._engine.counts().done == 0:
            return False  # an empty trace would go round for ever
        self._round += 1
        self._engine.restart()
        return True

    @property
    def is_finished(self) -> bool:
        """Whether every node of every round is done."""
        last = self.options.repeat and self._round + 1 >= self.options.repeat
        return self._engine.finished and (bool(last) or self._engine.counts().done == 0)

    @property
    def round(self) -> int:
        """How often the trace has been run to its end."""
        return self._round

    def rewind(self) -> None:
        """Start again from the first node. Refused while nodes are taken."""
        if taken := self._engine.counts().taken:
            raise FeederError(Code.IN_FLIGHT, f"{taken} nodes are still taken", other=taken)
        self.reset()

    def reset(self) -> None:
        """Start again from the first node, whatever is taken."""
        self._round = 0
        self._engine.restart()

    def check_whole(self) -> None:
        """Raise FeederError where the file has become shorter since it was opened.

        A plain file is mapped, not copied: to read what is no longer there ends the process.
        """
        if self._mapped is not None and self._mapped.size() < len(self._mapped):
            problem = "the file was shortened while in use"
            raise FeederError(Code.IO, problem, path=self.path, remedy="Open the feeder again.")

    # Looking.

    @property
    def metadata(self) -> Metadata:
        """What the file says of the whole."""
        return self._metadata

    def node(self, node_id: int) -> HandedNode | None:
        """A node by id; None if there is none, or if it is not in the window."""
        node: HandedNode | None = self._engine.node(node_id)
        return node

    def state(self, node_id: int) -> State:
        """Where a node is on its way."""
        return self._engine.state(node_id)

    def parents(self, node_id: int) -> list[tuple[int, EdgeKind, bool]]:
        """What a node waits for, as the file lists it: id, kind, whether it was inferred."""
        node = self._engine.node(node_id)
        return [] if node is None else list(node.edges)

    def children(self, node_id: int) -> list[int]:
        """Ids of the nodes that wait, or waited, for this one."""
        return self._engine.children(node_id)

    def ids(self) -> list[int]:
        """Ids of all nodes, ascending; with a window, of those held."""
        return self._engine.all_ids()

    def ids_in(self, state: State) -> list[int]:
        """Ids of the nodes in a state, ascending."""
        return self._engine.in_state(state)

    def counts(self) -> Counts:
        """How many nodes are where."""
        return self._engine.counts()

    def blocked(self, limit: int = 20) -> Blocked:
        """What waits for what, in words and as data; lists are cut after `limit` entries."""
        return find_blocked(self._engine, limit)


def is_json(path: Path) -> bool:
    """Whether a file is JSON, by its content: such an ET is read whole."""
    try:
        return path.is_file() and Head(head(path, _HEAD_BYTES)).is_json
    except ChakraError:
        return False


def _metadata(record: bytes) -> Metadata:
    try:
        return decode_metadata(record, 0, len(record))
    except WireError as error:
        # The metadata are the first record: before them stands but their length.
        length_bytes = max(1, (len(record).bit_length() + 6) // 7)
        raise FeederError(
            Code.MALFORMED, f"the metadata: {error}", offset=length_bytes + error.at
        ) from error


def _whole(source: str | os.PathLike[str] | bytes | BinaryIO) -> bytes | mmap.mmap:
    """The decompressed input; a plain file is mapped."""
    if isinstance(source, bytes):
        return _unpacked(source)
    if not isinstance(source, (str, os.PathLike)):
        return b"".join(_pieces(source))
    try:
        with open(source, "rb") as file:  # noqa: PTH123 - a path may come as str
            start = file.read(4)
            packed = start.startswith(_COMPRESSED) or is_zip(start)
            if packed or os.fstat(file.fileno()).st_size == 0:
                return read_all(Path(source))
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except NotADirectoryError:
        return _in_archive(Path(source))
    except OSError as error:
        reason = error.strerror or str(error)
        raise FeederError(Code.IO, f"cannot be read: {reason}", path=Path(source)) from None


def _in_archive(path: Path) -> bytes:
    """A file that is packed with others, by a path that leads to it."""
    try:
        return read_all(path)
    except ChakraError as error:
        raise FeederError(Code.IO, error.problem, path=path) from None


def _unpacked(data: bytes) -> bytes:
    return b"".join(_pieces(io.BytesIO(data))) if data.startswith(_COMPRESSED) else data


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    """The decompressed content of an open file, as it comes."""
    own = not hasattr(file, "peek")
    buffered: Any = io.BufferedReader(file) if own else file
    head = buffered.peek(4)[:4]
    stream = buffered
    if head.startswith(_COMPRESSED[0]):
        stream = gzip.GzipFile(fileobj=buffered)
    elif head == _COMPRESSED[1]:
        stream = zstandard.ZstdDecompressor().stream_reader(buffered, read_across_frames=True)
    read = getattr(stream, "read1", stream.read)
    try:
        while block := read(BLOCK_BYTES):
            yield block
    except (OSError, EOFError, zstandard.ZstdError) as error:
        raise FeederError(Code.IO, f"cannot be read: {error}") from None
    finally:
        if own and not file.closed:
            buffered.detach()  # the file stays open, as it was given
