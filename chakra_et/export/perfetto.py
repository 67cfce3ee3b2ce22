"""Timelines as Perfetto's protobuf: TrackEvents on one sequence, with interned names.

Numbers of fields are those of https://github.com/google/perfetto/tree/main/protos/perfetto/trace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.converters.et.wire import (
    BYTES,
    FIXED64,
    VARINT,
    Block,
    Heads,
    field_bytes,
    tag,
    varint,
    varint_block,
)
from chakra_et.converters.et.wire import joined as joined_blocks
from chakra_et.export.scene import Scene, Slices
from chakra_et.shown import encodable

_PACKET: Final = 1
_CLOCK_SNAPSHOT, _TIMESTAMP, _SEQUENCE, _EVENT, _INTERNED, _FLAGS = 6, 8, 10, 11, 12, 13
_CLOCK, _DEFAULTS, _DESCRIPTOR = 58, 59, 60
"""Fields of a packet."""
_BOOT_TIME, _DELTAS = 6, 64
"""Clocks: that of the trace, and one of our own, in which each time is counted from the last."""
_BEGIN, _END = 1, 2
_TIE: Final = 15
"""What flow ids of collectives end in, where those of edges have the kind."""
_NAME_OF_NODE: Final = 1

_THIS_SEQUENCE: Final = tag(_SEQUENCE, VARINT) + varint(1)
_NEEDS_STATE: Final = _THIS_SEQUENCE + tag(_FLAGS, VARINT) + varint(2)
_BLOCK_EVENTS: Final = 1 << 16


def perfetto(scene: Scene) -> Iterator[bytes]:
    """The bytes of a trace file, in pieces."""
    slices = scene.slices
    origin = int(slices.start.min()) if len(slices) else 0
    yield _packet(_clocks(origin) + _interned(slices, scene) + _THIS_SEQUENCE + _state())
    yield from _tracks(slices)
    yield from _events(scene, origin)


def _state() -> bytes:
    """The state of the sequence begins here, and times are of our clock."""
    cleared = tag(_FLAGS, VARINT) + varint(1)
    return cleared + field_bytes(_DEFAULTS, tag(_CLOCK, VARINT) + varint(_DELTAS))


def _packet(payload: bytes) -> bytes:
    return field_bytes(_PACKET, payload)


def _clocks(origin: int) -> bytes:
    """What both clocks show at the first start."""
    boot = _number(1, _BOOT_TIME) + _number(2, origin)
    ours = _number(1, _DELTAS) + _number(2, origin) + _number(3, 1) + _number(4, 1)
    both = field_bytes(1, boot) + field_bytes(1, ours)
    return field_bytes(_CLOCK_SNAPSHOT, both + _number(2, _BOOT_TIME))


def _number(field: int, value: int) -> bytes:
    return tag(field, VARINT) + varint(value)


def _text(text: str) -> bytes:
    return str(encodable(text)).encode()


def _interned(slices: Slices, scene: Scene) -> bytes:
    """Names of slices, categories and arguments, by number from 1 on."""
    groups = (
        (2, slices.names),
        (1, slices.categories),
        (3, ["node", *(f"waits for ({kind})" for kind in scene.flows.kinds)]),
    )
    entries = [
        field_bytes(field, _number(1, number) + field_bytes(2, _text(name)))
        for field, names in groups
        for number, name in enumerate(names, 1)
    ]
    return field_bytes(_INTERNED, b"".join(entries))


def _tracks(slices: Slices) -> Iterator[bytes]:
    """A descriptor of each process and track. Tracks are numbered from 1, processes behind them."""
    processes: dict[str, int] = {}
    for track in slices.tracks:
        processes.setdefault(track.process, len(slices.tracks) + 1 + len(processes))
    for place, (name, uuid) in enumerate(processes.items()):
        # Process 0 means the idle task to viewers.
        process = _number(1, place + 1) + field_bytes(6, _text(name))
        explicit = _number(11, 3)
        told = _number(1, uuid) + field_bytes(2, _text(name)) + field_bytes(3, process) + explicit
        yield _packet(field_bytes(_DESCRIPTOR, told) + _THIS_SEQUENCE)
    for number, track in enumerate(slices.tracks, 1):
        told = _number(1, number) + _number(5, processes[track.process])
        told += field_bytes(2, _text(track.name)) + _number(12, number)
        yield _packet(field_bytes(_DESCRIPTOR, told) + _THIS_SEQUENCE)


def event_order(slices: Slices) -> tuple[Rows, Rows]:
    """Slice and time order of all events: slice s begins at 2 s and ends at 2 s + 1.

    Gives the events in the order of time, and their times; on each track they nest.
    """
    events: list[int] = []
    opened: list[tuple[int, int]] = []
    columns = (slices.track.tolist(), slices.start.tolist(), slices.end.tolist())
    before = -1
    for place, (track, start, end) in enumerate(zip(*columns, strict=True)):
        if track != before:
            events += [event for _, event in reversed(opened)]
            opened, before = [], track
        while opened and (opened[-1][0] < end or opened[-1][0] <= start):
            events.append(opened.pop()[1])
        events.append(2 * place)
        opened.append((end, 2 * place + 1))
    events += [event for _, event in reversed(opened)]
    order = np.array(events, np.int64)
    times = np.where(order % 2 == 1, slices.end[order // 2], slices.start[order // 2])
    by_time = np.argsort(times, kind="stable")
    return order[by_time], times[by_time]


def _events(scene: Scene, origin: int) -> Iterator[bytes]:
    slices = scene.slices
    order, times = event_order(slices)
    extra = _flows(scene)
    delta = np.diff(times, prepend=origin).astype(np.uint64)
    event_heads, packet_heads = Heads(tag(_EVENT, BYTES)), Heads(tag(_PACKET, BYTES))
    for first in range(0, len(order), _BLOCK_EVENTS):
        span = slice(first, first + _BLOCK_EVENTS)
        heads = joined_blocks(
            [
                _block(tag(_TIMESTAMP, VARINT), delta[span]),
                _constant(_NEEDS_STATE, len(order[span])),
            ]
        )
        bodies = _bodies(slices, order[span])
        packets = []
        for event, head, body in zip(order[span].tolist(), heads, bodies, strict=True):
            whole = body + extra[event] if event in extra else body
            payload = head + event_heads[len(whole)] + whole
            packets.append(packet_heads[len(payload)] + payload)
        yield b"".join(packets)


def _bodies(slices: Slices, order: Rows) -> list[bytes]:
    """The TrackEvent of each event, without its flows: an end has only type and track."""
    begins = order % 2 == 0
    place = order // 2
    type_of = _block(tag(9, VARINT), np.where(begins, _BEGIN, _END).astype(np.uint64))
    track = _block(tag(11, VARINT), (slices.track[place] + 1).astype(np.uint64))
    name = _block(tag(10, VARINT), (slices.name[place] + 1).astype(np.uint64))
    category = _block(tag(3, VARINT), (slices.category[place] + 1).astype(np.uint64))
    node = varint_block(
        _number(1, _NAME_OF_NODE) + tag(3, VARINT), slices.node[place], tag(4, BYTES)
    )
    assert node is not None
    only_begins = [
        Block(block.table, np.where(begins, block.lengths, 0)) for block in (name, category, node)
    ]
    return joined_blocks([type_of, track, *only_begins])


def _block(before: bytes, values: npt.NDArray[np.uint64]) -> Block:
    block = varint_block(before, values)
    assert block is not None
    return block


def _constant(data: bytes, count: int) -> Block:
    table = np.broadcast_to(np.frombuffer(data, np.uint8), (count, len(data)))
    return Block(table, np.full(count, len(data)))


def _flows(scene: Scene) -> dict[int, bytes]:
    """Flow ids by event, and on the target which node it waits for, by kind.

    An id begins where the source does, and ends where the target begins; or where that ends, if it
    began before the source, as a call that waits for work that it launched does.
    """
    slices, flows = scene.slices, scene.flows
    found: dict[int, bytes] = defaultdict(bytes)
    begins, ends = tag(47, FIXED64), tag(48, FIXED64)
    columns = (flows.source.tolist(), flows.target.tolist(), flows.kind.tolist())
    late = (slices.start[flows.target] < slices.start[flows.source]).tolist()
    nodes = slices.node[flows.source].tolist()
    for number, (source, target, kind) in enumerate(zip(*columns, strict=True), 1):
        flow = (number << 4 | kind).to_bytes(8, "little")
        found[2 * source] += begins + flow
        found[2 * target + late[number - 1]] += ends + flow
        waits = _number(1, 2 + kind) + _number(3, nodes[number - 1])
        found[2 * target] += field_bytes(4, waits)
    for number, members in enumerate(scene.ties, 1):
        flow = (number << 4 | _TIE).to_bytes(8, "little")
        ordered = sorted(members, key=lambda place: int(slices.start[place]))
        for place, after in pairwise([*ordered, None]):
            assert place is not None
            found[2 * place] += (begins if after is not None else ends) + flow
    return found
