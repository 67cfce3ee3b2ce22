"""A feeder in another process, with the calls of the one in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, Protocol

from chakra_et.feeder.engine import Counts
from chakra_et.feeder.errors import Code, FeederError
from chakra_et.feeder.messages import Reply, Request
from chakra_et.feeder.node import MessageNode
from chakra_et.feeder.options import Next, Options
from chakra_et.feeder.session import RESET, REWIND, encode_options
from chakra_et.feeder.stdio import read_frame, write_frame


class Channel(Protocol):
    """Carries a session's messages. Replies come in the order of the requests."""

    def send(self, request: Request) -> None:
        """Send a request."""

    def receive(self) -> Reply:
        """Wait for the next reply. Raises FeederError when the other side is gone."""

    def close(self) -> None:
        """End the session."""


class RemoteNode(MessageNode):
    """A node that came over a channel; its id is known without reading its bytes."""

    __slots__ = ("_id",)

    def __init__(self, message: bytes, node_id: int) -> None:
        super().__init__(message)
        self._id = node_id

    @property
    def id(self) -> int:
        """The node's id, unique within its trace."""
        return self._id


class RemoteFeeder:
    """One rank of a service.

    Taken nodes come in batches; `done()` is sent along with the next request, so a simulator that
    takes all that is ready pays for one round trip per batch.
    """

    def __init__(
        self,
        channel: Channel,
        rank: int = 0,
        *,
        options: Options | None = None,
        batch: int = 4096,
    ) -> None:
        self._channel = channel
        self._rank = rank
        self._batch = batch
        self._tag = 0
        self._done: list[int] = []
        if options is not None:
            self._ask(Request(open=encode_options(options)))

    def __enter__(self) -> RemoteFeeder:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session."""
        self._channel.close()

    def _post(self, request: Request) -> None:
        self._tag += 1
        request.tag, request.rank = self._tag, self._rank
        if self._done and not request.restart and request.open is None:
            request.done, self._done = self._done, []
        self._channel.send(request)

    def _ask(self, request: Request) -> Reply:
        self._post(request)
        return _checked(self._channel.receive())

    def __iter__(self) -> Iterator[RemoteNode]:
        """The nodes in the order of a run, in batches; the next batch is asked for ahead."""
        self._post(Request(next=self._batch, run=1))
        while True:
            reply = _checked(self._channel.receive())
            ended = reply.next != Next.NODE
            if not ended:
                self._post(Request(next=self._batch, run=1))
            yield from _nodes(reply)
            if ended:
                if reply.next != Next.FINISHED:
                    raise FeederError(Code.BLOCKED, f"nodes are left:\n{self.blocked()}".rstrip())
                return

    def take_many(self, limit: int | None = None) -> tuple[Next, list[RemoteNode]]:
        """Take up to `limit` ready nodes, and the reason why there are not more."""
        reply = self._ask(Request(next=limit or self._batch))
        return Next(reply.next), _nodes(reply)

    def next(self) -> tuple[Next, RemoteNode | None]:
        """Take the first ready node: `(Next.NODE, node)`, or the reason why there is none."""
        answer, nodes = self.take_many(1)
        return (Next.NODE, nodes[0]) if nodes else (answer, None)

    def take(self, node_id: int) -> RemoteNode:
        """Take a ready node, and return it."""
        return _nodes(self._ask(Request(take=[node_id])))[0]

    def done(self, node_id: int) -> None:
        """Finish a taken node; told to the service with the next request."""
        self._done.append(node_id)

    def done_many(self, node_ids: Iterable[int]) -> None:
        """Finish taken nodes; told to the service with the next request."""
        self._done.extend(node_ids)

    def flush(self) -> None:
        """Tell the service what is done."""
        self._ask(Request())

    def push_back(self, node_id: int) -> None:
        """Give a taken node back: it is ready again."""
        self._ask(Request(push_back=[node_id]))

    def ready(self, limit: int = 4096) -> list[int]:
        """Ids of nodes that can be taken, in order."""
        return self._ask(Request(ready=limit)).ready

    def blocked(self, limit: int = 20) -> str:
        """What waits for what."""
        return self._ask(Request(blocked=limit)).blocked

    def counts(self) -> Counts:
        """How many nodes are where."""
        counts = self._ask(Request(count=1)).counts
        assert counts is not None
        numbers = (counts.waiting, counts.ready, counts.taken, counts.done, counts.held)
        return Counts(*numbers, counts.peak_held, bool(counts.all_read))

    def rewind(self) -> None:
        """Start again from the first node. Refused while nodes are taken."""
        if self._done:
            self.flush()
        self._ask(Request(restart=REWIND))

    def reset(self) -> None:
        """Start again from the first node, whatever is taken."""
        self._done.clear()
        self._ask(Request(restart=RESET))


def _nodes(reply: Reply) -> list[RemoteNode]:
    if reply.nodes is None:
        return []
    return list(map(RemoteNode, reply.nodes.message, reply.nodes.id))


def _checked(reply: Reply) -> Reply:
    if reply.error is not None:
        told = reply.error
        code = Code(told.code) if told.code in Code._value2member_map_ else Code.IO
        raise FeederError(
            code, told.message, node=told.node, other=told.other, offset=told.offset or None
        )
    return reply


class PipeChannel:
    """A session with a `chakra feed --stdio` process, over its pipes."""

    def __init__(self, process: Any, max_reply: int = 1 << 26) -> None:
        self._process = process
        self._max_reply = max_reply

    def send(self, request: Request) -> None:
        """Send a request."""
        try:
            write_frame(self._process.stdin, request.encode())
        except (BrokenPipeError, ValueError):
            raise _gone() from None

    def receive(self) -> Reply:
        """Wait for the next reply."""
        data = read_frame(self._process.stdout, self._max_reply)
        if data is None:
            raise _gone()
        return Reply.decode(data)

    def close(self) -> None:
        """End the session, and the process with it."""
        with suppress(OSError):  # of bytes that the process did not read
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=10)


def _gone() -> FeederError:
    return FeederError(Code.IO, "the feeder's process has ended")
