"""From an algorithm to each rank's messages, and to the additions behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from chakra_et.build import Rank
from chakra_et.workloads.algorithms import Algorithm
from chakra_et.workloads.durations import Durations
from chakra_et.workloads.operators import Operator

ELEMENT_BYTES = 4
"""Elements are fp32, for the work of adding them."""


class Buffer:
    """The chunks of one rank: which operations wrote and read each of them last."""

    def __init__(self, rank: Rank, chunk_bytes: int, durations: Durations) -> None:
        self._rank = rank
        self._chunk_bytes = chunk_bytes
        self._durations = durations
        self._written: dict[int, int] = {}
        self._read: dict[int, list[int]] = {}

    def send(self, to: int, chunks: list[int], tag: int | None = None) -> int:
        """Send what stands in some chunks."""
        sent = self._rank.send(
            to, len(chunks) * self._chunk_bytes, after=self._writers(chunks), tag=tag,
            name=f"send {_told(chunks)}",
        )  # fmt: skip
        self.reads(chunks, sent)
        return sent

    def receive(
        self, source: int, chunks: list[int], *, after: Iterable[int] = (), tag: int | None = None
    ) -> int:
        """Receive: into the chunks, once nobody needs what was there. See `add` for a sum."""
        got = self._rank.receive(
            source, len(chunks) * self._chunk_bytes, tag=tag, name=f"receive {_told(chunks)}",
            after=[*after, *self._writers(chunks), *self._readers(chunks)],
        )  # fmt: skip
        self.writes(chunks, got)
        return got

    def receive_aside(self, source: int, chunks: list[int], tag: int | None = None) -> int:
        """Receive what is to be added: into a buffer of its own, which waits for nobody."""
        return self._rank.receive(
            source, len(chunks) * self._chunk_bytes, tag=tag, name=f"receive {_told(chunks)}"
        )

    def add(self, chunks: list[int], after: Iterable[int]) -> int:
        """Add what was received to the chunks."""
        work = addition(len(chunks) * self._chunk_bytes)
        added = self._rank.compute(
            f"add {_told(chunks)}", op_type="add", flops=work.pointwise,
            moved_bytes=work.moved_bytes, duration_ns=self._durations(work) or 0,
            after=[*after, *self._writers(chunks), *self._readers(chunks)],
        )  # fmt: skip
        self.writes(chunks, added)
        return added

    def writes(self, chunks: list[int], operation: int) -> None:
        """An operation writes chunks: what reads them later waits for it."""
        for chunk in chunks:
            self._written[chunk] = operation
            self._read.pop(chunk, None)

    def reads(self, chunks: list[int], operation: int) -> None:
        """An operation reads chunks: what writes them later waits for it."""
        for chunk in chunks:
            self._read.setdefault(chunk, []).append(operation)

    def _writers(self, chunks: list[int]) -> list[int]:
        return [self._written[chunk] for chunk in chunks if chunk in self._written]

    def _readers(self, chunks: list[int]) -> list[int]:
        return [reader for chunk in chunks for reader in self._read.get(chunk, ())]


def messages(algorithm: Algorithm, size_bytes: int, durations: Durations) -> Callable[[Rank], None]:
    """The program of every rank; `size_bytes` is the whole buffer that is cut into chunks.

    What goes to one rank in one step is one message.
    """
    chunk_bytes = -(-size_bytes // algorithm.chunks)
    parts = _by_rank(algorithm)

    def program(rank: Rank) -> None:
        buffer = Buffer(rank, chunk_bytes, durations)
        for part in parts[rank.id].values():
            # All of a step read what was there before, so sends come first.
            for target, chunks in part.sent.items():
                buffer.send(target, chunks)
            sums = []
            for (source, reduce), chunks in part.received.items():
                if reduce:
                    sums.append((chunks, buffer.receive_aside(source, chunks)))
                else:
                    buffer.receive(source, chunks)
            for chunks, received in sums:
                buffer.add(chunks, [received])

    return program


@dataclass
class Part:
    """What one rank does in a step: chunks sent by target, received by source and if added."""

    sent: dict[int, list[int]] = field(default_factory=dict)
    received: dict[tuple[int, bool], list[int]] = field(default_factory=dict)


def _by_rank(algorithm: Algorithm) -> list[dict[int, Part]]:
    """For each rank the steps that it takes part in."""
    parts: list[dict[int, Part]] = [{} for _ in range(algorithm.ranks)]
    for number, step in enumerate(algorithm.steps):
        for transfer in step:
            source = parts[transfer.source].setdefault(number, Part())
            source.sent.setdefault(transfer.target, []).append(transfer.chunk)
            target = parts[transfer.target].setdefault(number, Part())
            key = (transfer.source, transfer.reduce)
            target.received.setdefault(key, []).append(transfer.chunk)
    return parts


def _told(chunks: list[int]) -> str:
    return f"chunk {chunks[0]}" if len(chunks) == 1 else f"{len(chunks)} chunks"


def addition(size_bytes: int) -> Operator:
    """Adding one buffer of fp32 to another."""
    shape = (-(-size_bytes // ELEMENT_BYTES),)
    return Operator("add", "add", (shape, shape), (shape,), pointwise=shape[0], dtype="fp32")
