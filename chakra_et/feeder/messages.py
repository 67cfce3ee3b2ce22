# ruff: noqa: RUF009 - the functions below call dataclasses.field
"""The messages of `schema/feeder.proto`, written and read by the project's own wire codec.

No protobuf runtime is needed to serve or to ask. A message is a dataclass whose fields say their
number and form; unknown fields are ignored.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

import numpy as np

from chakra_et.converters.et.wire import (
    BYTES,
    VARINT,
    WireError,
    packed,
    read_varint,
    skip,
    tag,
    unpack,
    varint,
)

_NUMBER, _TEXT, _NUMBERS, _TEXTS, _BLOBS, _MESSAGE = range(6)
_FORM: Final = "form"

_MANY: Final = 512  # numbers, or bytes of numbers, from which on columns are faster
_SHORT: Final = 0x80
_NODE_TAG: Final = tag(2, BYTES)[0]
_HEADS: Final = [tag(2, BYTES) + varint(size) for size in range(_SHORT)]

M = TypeVar("M", bound="Message")


def _number(place: int) -> Any:
    return field(default=0, metadata={_FORM: (place, _NUMBER, None)})


def _text(place: int) -> Any:
    return field(default="", metadata={_FORM: (place, _TEXT, None)})


def _many(place: int, form: int) -> Any:
    return field(default_factory=list, metadata={_FORM: (place, form, None)})


def _message(place: int, kind: type[Message]) -> Any:
    return field(default=None, metadata={_FORM: (place, _MESSAGE, kind)})


def _pack(numbers: list[int]) -> bytes:
    """Numbers as varints, one after the other."""
    if len(numbers) >= _MANY:
        with suppress(OverflowError):  # of a negative number, which has to be masked
            return packed(np.array(numbers, np.uint64))[0]
    return b"".join(map(varint, numbers))


def _unpack(data: bytes, at: int, end: int) -> list[int]:
    """The varints between two positions. Raises WireError for one that is cut off or too long."""
    numbers: list[int] = []
    if end - at >= _MANY:
        numbers = unpack(data[at:end]).tolist()
        return numbers
    while at < end:
        value, at = read_varint(data, at, end)
        numbers.append(value)
    return numbers


class Message:
    """What the messages have in common."""

    def encode(self) -> bytes:
        """The message as protobuf."""
        out = bytearray()
        for one in fields(self):  # type: ignore[arg-type]
            place, form, _ = one.metadata[_FORM]
            value = getattr(self, one.name)
            if form == _MESSAGE:
                if value is not None:
                    payload = value.encode()
                    out += tag(place, BYTES) + varint(len(payload)) + payload
            elif not value:
                continue
            elif form == _NUMBER:
                out += tag(place, VARINT) + varint(int(value))
            elif form == _NUMBERS:
                payload = _pack(value)
                out += tag(place, BYTES) + varint(len(payload)) + payload
            else:
                head = tag(place, BYTES)
                items = [value] if form == _TEXT else value
                for item in items:
                    payload = item if form == _BLOBS else item.encode("utf-8", "replace")
                    out += head
                    out += varint(len(payload))
                    out += payload
        return bytes(out)

    @classmethod
    def decode(cls: type[M], data: bytes) -> M:
        """The message in `data`. Raises WireError when there is none."""
        message = cls()
        known = {one.metadata[_FORM][0]: one for one in fields(cls)}  # type: ignore[arg-type]
        at, end = 0, len(data)
        while at < end:
            number, at = read_varint(data, at, end)
            behind = skip(data, at, end, number & 7)
            one = known.get(number >> 3)
            if one is not None:
                message._take(one.name, one.metadata[_FORM], number & 7, data, at, behind)
            at = behind
        return message

    def _take(
        self, name: str, told: tuple[int, int, Any], wire_type: int, data: bytes, at: int, end: int
    ) -> None:
        _, form, kind = told
        if wire_type == VARINT:
            value, _ = read_varint(data, at, end)
            if form == _NUMBERS:
                getattr(self, name).append(value)
            elif form == _NUMBER:
                setattr(self, name, value)
            return
        if wire_type != BYTES:
            return
        _, at = read_varint(data, at, end)
        if form == _NUMBERS:
            getattr(self, name).extend(_unpack(data, at, end))
        elif form == _BLOBS:
            getattr(self, name).append(data[at:end])
        elif form == _TEXTS:
            getattr(self, name).append(data[at:end].decode("utf-8", "replace"))
        elif form == _TEXT:
            setattr(self, name, data[at:end].decode("utf-8", "replace"))
        elif form == _MESSAGE:
            setattr(self, name, kind.decode(data[at:end]))


@dataclass
class OptionsMessage(Message):
    """chakra_et.feeder.v1.Options."""

    order: int = _number(1)
    missing_parent: int = _number(2)
    self_edge: int = _number(3)
    gate: list[str] = _many(4, _TEXTS)
    ignore_inferred: int = _number(5)
    skip_metadata: int = _number(6)
    window: int = _number(7)
    strict_window: int = _number(8)
    repeat: int = _number(9)


@dataclass
class Request(Message):
    """chakra_et.feeder.v1.Request."""

    tag: int = _number(1)
    rank: int = _number(2)
    open: OptionsMessage | None = _message(3, OptionsMessage)
    restart: int = _number(4)
    done: list[int] = _many(5, _NUMBERS)
    push_back: list[int] = _many(6, _NUMBERS)
    take: list[int] = _many(7, _NUMBERS)
    next: int = _number(8)
    run: int = _number(9)
    ready: int = _number(10)
    blocked: int = _number(11)
    count: int = _number(12)


@dataclass
class ErrorMessage(Message):
    """chakra_et.feeder.v1.Error."""

    code: int = _number(1)
    message: str = _text(2)
    node: int = _number(3)
    other: int = _number(4)
    offset: int = _number(5)


@dataclass
class NodesMessage(Message):
    """chakra_et.feeder.v1.Nodes."""

    id: list[int] = _many(1, _NUMBERS)
    message: list[bytes] = _many(2, _BLOBS)

    def encode(self) -> bytes:
        """The same as for any message, but as fast as thousands of nodes need it."""
        head = tag(2, BYTES)
        ids = _pack(self.id)
        parts = [tag(1, BYTES), varint(len(ids)), ids] if ids else []
        for size, message in zip(map(len, self.message), self.message, strict=True):
            parts += (_HEADS[size] if size < _SHORT else head + varint(size), message)
        return b"".join(parts)

    @classmethod
    def decode(cls, data: bytes) -> NodesMessage:
        """The same as for any message, with a short cut through the nodes' bytes."""
        nodes = cls()
        at, end = 0, len(data)
        while at < end:
            run = at
            while at + 1 < end and data[at] == _NODE_TAG and data[at + 1] < _SHORT:
                behind = at + 2 + data[at + 1]
                if behind > end:
                    break
                nodes.message.append(data[at + 2 : behind])
                at = behind
            if at == run:  # another field, or a longer node
                number, at = read_varint(data, at, end)
                behind = skip(data, at, end, number & 7)
                if number >> 3 == 1:
                    nodes._take("id", (1, _NUMBERS, None), number & 7, data, at, behind)
                elif number >> 3 == 2:
                    nodes._take("message", (2, _BLOBS, None), number & 7, data, at, behind)
                at = behind
        return nodes


@dataclass
class CountsMessage(Message):
    """chakra_et.feeder.v1.Counts."""

    waiting: int = _number(1)
    ready: int = _number(2)
    taken: int = _number(3)
    done: int = _number(4)
    held: int = _number(5)
    peak_held: int = _number(6)
    all_read: int = _number(7)


@dataclass
class Reply(Message):
    """chakra_et.feeder.v1.Reply."""

    tag: int = _number(1)
    rank: int = _number(2)
    error: ErrorMessage | None = _message(3, ErrorMessage)
    nodes: NodesMessage | None = _message(4, NodesMessage)
    next: int = _number(5)
    ready: list[int] = _many(6, _NUMBERS)
    blocked: str = _text(7)
    counts: CountsMessage | None = _message(8, CountsMessage)


__all__ = [
    "CountsMessage",
    "ErrorMessage",
    "NodesMessage",
    "OptionsMessage",
    "Reply",
    "Request",
    "WireError",
]
