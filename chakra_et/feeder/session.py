"""One client's hold on the feeders of a service, whatever carries its requests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from chakra_et.converters.et import encode_et
from chakra_et.errors import ChakraError
from chakra_et.feeder.errors import Code, FeederError
from chakra_et.feeder.feeder import Feeder, Source, is_json
from chakra_et.feeder.messages import (
    CountsMessage,
    ErrorMessage,
    NodesMessage,
    OptionsMessage,
    Reply,
    Request,
)
from chakra_et.feeder.node import FeederNode
from chakra_et.feeder.options import EVERY_KIND, Fault, Next, Options, Order, State, edge_kinds
from chakra_et.files import read
from chakra_et.model import Trace

ORDERS: Final[tuple[Order, ...]] = ("id", "start")
FAULTS: Final[tuple[Fault, ...]] = ("fail", "drop", "wait")
NO_RESTART, REWIND, RESET = range(3)


@dataclass(frozen=True)
class Limits:
    """What one session may ask for.

    sessions: open at once, over all clients.
    batch: nodes in a reply; reply_bytes: of nodes in a reply, except that one node always fits.
    request_bytes: of a request. idle_s, session_s: seconds without a request, and altogether.
    """

    sessions: int = 64
    batch: int = 8192
    reply_bytes: int = 1 << 20
    request_bytes: int = 1 << 22
    idle_s: float = 300.0
    session_s: float = 86400.0


class Session:
    """The feeders of one client, one for each rank that it names."""

    def __init__(self, sources: Mapping[int, Source], options: Options, limits: Limits) -> None:
        self._sources = sources
        self._options = options
        self._limits = limits
        self._feeders: dict[int, Feeder] = {}
        self._runs: dict[int, Iterator[Any]] = {}
        self._last: dict[int, int] = {}  # of a run

    def answer(self, request: Request) -> Reply:
        """Carry out a request."""
        reply = Reply(tag=request.tag, rank=request.rank)
        try:
            self._carry_out(request, reply)
        except FeederError as error:
            reply.error = ErrorMessage(
                error.code, str(error), error.node or 0, error.other or 0, error.offset or 0
            )
        except (ChakraError, ValueError) as error:
            reply.error = ErrorMessage(Code.IO, str(error))
        return reply

    def _carry_out(self, request: Request, reply: Reply) -> None:
        if not request.run or request.open is not None or request.restart:
            self._end_run(request.rank)
        feeder = self._feeder(request)
        if request.restart == REWIND:
            feeder.rewind()
        elif request.restart == RESET:
            feeder.reset()
        for node_id in request.done:
            feeder.done(node_id)
        for node_id in request.push_back:
            feeder.push_back(node_id)
        if request.take or request.next:
            reply.nodes = NodesMessage()
            self._take(feeder, request.take, reply.nodes)
        if request.next:
            assert reply.nodes is not None
            self._next(feeder, request, reply.nodes, reply)
        if request.ready:
            reply.ready = feeder.ready(min(request.ready, self._limits.batch))
        if request.blocked:
            reply.blocked = str(feeder.blocked(min(request.blocked, self._limits.batch)))
        if request.count:
            reply.counts = CountsMessage(*map(int, feeder.counts()))

    def _take(self, feeder: Feeder, wanted: list[int], nodes: NodesMessage) -> None:
        """Take the first of the nodes that are wanted, as many as one reply may hold."""
        room = self._limits.reply_bytes
        for node_id in wanted[: self._limits.batch]:
            node = feeder.take(node_id)
            assert isinstance(node, FeederNode)
            nodes.id.append(node.id)
            nodes.message.append(node.message)
            room -= len(node.message)
            if room <= 0:
                return

    def _feeder(self, request: Request) -> Feeder:
        rank = request.rank
        if rank not in self._sources:
            known = ", ".join(map(str, sorted(self._sources)[:20]))
            raise FeederError(Code.IO, f"no rank {rank} here; there are {known}")
        if request.open is not None:
            self._feeders.pop(rank, None)
            options = self._choose(request.open)
            self._feeders[rank] = Feeder(_in_messages(self._sources[rank]), options=options)
        elif rank not in self._feeders:
            source = _in_messages(self._sources[rank])
            self._feeders[rank] = Feeder(source, options=self._options)
        self._feeders[rank].check_whole()
        return self._feeders[rank]

    def _choose(self, told: OptionsMessage) -> Options:
        try:
            order = ORDERS[told.order]
            missing, own = FAULTS[told.missing_parent], FAULTS[told.self_edge]
        except IndexError:
            raise FeederError(Code.INVALID_OPTION, "an option has an unknown number") from None
        return Options(
            order=order,
            missing_parent=missing,
            self_edge=own,
            gate=edge_kinds(told.gate) if told.gate else EVERY_KIND,
            inferred=not told.ignore_inferred,
            skip_metadata=bool(told.skip_metadata),
            window=told.window,
            strict_window=bool(told.strict_window),
            repeat=told.repeat or 1,
            max_record=self._options.max_record,
        )

    def _next(self, feeder: Feeder, request: Request, nodes: NodesMessage, reply: Reply) -> None:
        room = self._limits.reply_bytes - sum(map(len, nodes.message))
        wanted = min(request.next, self._limits.batch - len(nodes.id)) if room > 0 else 0
        before = len(nodes.id)
        ready = self._running(feeder, request.rank) if request.run else _taking(feeder)
        add_id, add_message = nodes.id.append, nodes.message.append
        try:
            for node in islice(ready, wanted):
                message = node.message
                add_id(node.id)
                add_message(message)
                room -= len(message)
                if room <= 0:
                    return
        except FeederError as error:
            if error.code is not Code.BLOCKED:  # which the reply tells otherwise
                raise
        finally:
            if request.run and len(nodes.id) > before:
                self._last[request.rank] = nodes.id[-1]
        if len(nodes.id) < before + wanted:
            reply.next = self._why(feeder)

    def _running(self, feeder: Feeder, rank: int) -> Iterator[Any]:
        """The run of a rank: one loop over all requests, so that it need not be begun again."""
        if rank not in self._runs:
            self._runs[rank] = iter(feeder)
        return self._runs[rank]

    def _end_run(self, rank: int) -> None:
        """For the client all nodes of a run are done; the loop may still have the last one."""
        if self._runs.pop(rank, None) is not None:
            feeder, last = self._feeders[rank], self._last.pop(rank, None)
            if last is not None and feeder.state(last) is State.TAKEN:
                feeder.done(last)

    def _why(self, feeder: Feeder) -> Next:
        """Why there are no more nodes."""
        if feeder.is_finished:
            return Next.FINISHED
        return Next.PENDING if feeder.counts().taken else Next.BLOCKED


def _in_messages(source: Source) -> Source:
    """The source as one whose nodes are messages: replies carry them as they are."""
    if isinstance(source, (str, os.PathLike)) and is_json(Path(source)):
        source = read(os.fspath(source))
    return b"".join(encode_et(source)) if isinstance(source, Trace) else source


def _taking(feeder: Feeder) -> Iterator[Any]:
    """Takes node after node, without finishing them."""
    while True:
        answer, node = feeder.next()
        if answer is not Next.NODE:
            return
        yield node


def encode_options(options: Options) -> OptionsMessage:
    """Options as a client sends them."""
    return OptionsMessage(
        order=ORDERS.index(options.order),
        missing_parent=FAULTS.index(options.missing_parent),
        self_edge=FAULTS.index(options.self_edge),
        gate=[] if options.gate >= EVERY_KIND else sorted(kind.label for kind in options.gate),
        ignore_inferred=int(not options.inferred),
        skip_metadata=int(options.skip_metadata),
        window=options.window,
        strict_window=int(options.strict_window),
        repeat=options.repeat,
    )
