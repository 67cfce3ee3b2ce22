"""Small traces as bytes, and the order in which a feeder must hand out their nodes."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chakra_et.converters.et.wire import BYTES, VARINT, tag, varint

METADATA = b"\x0a\x051.0.0"


def frame(record: bytes) -> bytes:
    """A record with its length before it."""
    return varint(len(record)) + record


def bytes_field(number: int, payload: bytes) -> bytes:
    """A length-delimited field."""
    return tag(number, BYTES) + varint(len(payload)) + payload


def number_field(number: int, value: int) -> bytes:
    """A field with a number."""
    return tag(number, VARINT) + varint(value)


def attribute(name: str, kind: int, value: int | str) -> bytes:
    """A Node.attr."""
    payload = (
        bytes_field(kind, value.encode()) if isinstance(value, str) else number_field(kind, value)
    )
    return bytes_field(10, bytes_field(1, name.encode()) + payload)


@dataclass
class N:
    """A node to write."""

    id: int
    data: Sequence[int] = ()
    ctrl: Sequence[int] = ()
    type: int = 4
    name: str = ""
    start: int = 0
    duration: int = 0
    attrs: bytes = b""
    packed: bool = True

    @property
    def parents(self) -> list[int]:
        return [*self.ctrl, *self.data]

    def record(self) -> bytes:
        """The node as protobuf."""
        out = number_field(1, self.id) if self.id else b""
        out += bytes_field(2, self.name.encode()) if self.name else b""
        out += number_field(3, self.type) if self.type else b""
        for number, deps in ((4, self.ctrl), (5, self.data)):
            if self.packed and deps:
                out += bytes_field(number, b"".join(map(varint, deps)))
            else:
                out += b"".join(number_field(number, dep) for dep in deps)
        out += number_field(6, self.start) if self.start else b""
        out += number_field(7, self.duration) if self.duration else b""
        return out + self.attrs


def trace(nodes: Iterable[N], metadata: bytes | None = METADATA) -> bytes:
    """A whole file."""
    head = b"" if metadata is None else frame(metadata)
    return head + b"".join(frame(node.record()) for node in nodes)


def reference_order(nodes: Iterable[N]) -> list[int]:
    """By the plainest means: again and again the smallest id whose parents are all done."""
    parents = {node.id: node.parents for node in nodes}
    done: list[int] = []
    while True:
        ready = [i for i in parents if i not in done and all(p in done for p in parents[i])]
        if not ready:
            return done
        done.append(min(ready))


def reference_window(nodes: Sequence[N], window: int) -> list[int]:
    """The same when at most `window` nodes are held, unless nothing could run."""
    held: dict[int, list[int]] = {}
    done: list[int] = []
    unread = list(nodes)
    while True:
        ready = [i for i in held if all(p in done for p in held[i])]
        if unread and (len(held) < window or not ready):
            node = unread.pop(0)
            held[node.id] = node.parents
        elif not ready:
            return done
        else:
            del held[min(ready)]
            done.append(min(ready))


def random_nodes(rng: random.Random, count: int, spread: int, *, cyclic: bool = False) -> list[N]:
    """Nodes in random file order with random parents; acyclic unless asked for."""
    ids = rng.sample(range(count * spread + 1), count)
    if rng.random() < 0.2:
        ids = [i * 1_000_003 + 7 for i in ids]
    if rng.random() < 0.05 and ids:
        ids[0] = (1 << 64) - 1
    nodes = []
    for place, node_id in enumerate(ids):
        known = ids if cyclic and rng.random() < 0.1 else ids[:place]
        parents = [rng.choice(known) for _ in range(rng.randrange(4))] if known else []
        parents = [p for p in parents if p != node_id]
        cut = rng.randrange(len(parents) + 1)
        nodes.append(
            N(
                node_id,
                parents[:cut],
                parents[cut:],
                type=rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 42]),
                name=rng.choice(["", "op", "näme", "x" * 200]),
                start=rng.randrange(4),
                duration=rng.choice([0, 1, 300, 1 << 40]),
                packed=rng.random() < 0.8,
            )
        )
    if rng.random() < 0.7:
        rng.shuffle(nodes)
    return nodes
