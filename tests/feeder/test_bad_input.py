"""Bad bytes through every door: a clear error, no crash, no unbounded memory."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest
from feeder_traces import (
    METADATA,
    N,
    bytes_field,
    frame,
    number_field,
    random_nodes,
    trace,
)
from native import NativeFeeder

from chakra_et.converters.et.wire import varint
from chakra_et.feeder import Code, Feeder, FeederError, Next

GOOD = trace([N(0), N(1, [0]), N(2, [0, 1], name="last")])
ENDLESS = b"\xff" * 12

CASES: dict[str, tuple[bytes, Code]] = {
    "cut in a record": (GOOD[:-3], Code.TRUNCATED),
    "cut in a length": (GOOD + b"\x80", Code.TRUNCATED),
    "4 GB length": (GOOD + varint(1 << 32) + b"x", Code.TOO_LARGE),
    "length of 2^64 - 1": (GOOD + varint((1 << 64) - 1), Code.TOO_LARGE),
    "endless length": (GOOD + ENDLESS, Code.MALFORMED),
    "endless number": (GOOD + frame(b"\x08" + ENDLESS), Code.MALFORMED),
    "endless number in a list": (GOOD + frame(bytes_field(5, ENDLESS)), Code.MALFORMED),
    "list cut off": (GOOD + frame(bytes_field(5, b"\x01\x80")), Code.MALFORMED),
    "field cut off": (GOOD + frame(b"\x12\x7fabc"), Code.MALFORMED),
    "field of 2^63 bytes": (GOOD + frame(b"\x12" + varint(1 << 63)), Code.MALFORMED),
    "fixed field cut off": (GOOD + frame(b"\x79\x01"), Code.MALFORMED),
    "group": (GOOD + frame(b"\x0b\x0c"), Code.MALFORMED),
    "field without number": (GOOD + frame(b"\x00\x01"), Code.MALFORMED),
    "duplicate id": (GOOD + frame(N(1).record()), Code.DUPLICATE_ID),
    "dangling": (GOOD + frame(N(9, [77]).record()), Code.MISSING_PARENT),
    "dangling control": (GOOD + frame(N(9, ctrl=[77]).record()), Code.MISSING_PARENT),
    "self edge": (GOOD + frame(N(9, [9]).record()), Code.SELF_EDGE),
    "garbage": (b"\x13\x37" * 40, Code.MALFORMED),
    "nothing at all": (b"", Code.TRUNCATED),
    "schema 0.0.1": (frame(b"\x08\x00\x12\x01a\x18\x03\x20\x01\x70\x01"), Code.OLD_SCHEMA),
    "schema 0.0.3": (frame(bytes_field(1, b"\x0a\x06schema\x10\x04B\x051.0.1")), Code.OLD_SCHEMA),
}


def attempts(native: Any, data: bytes) -> list[Any]:
    """Every door."""
    return [
        lambda: Feeder(data),
        lambda: Feeder(io.BytesIO(data)),
        lambda: Feeder(data, window=100),
        lambda: Feeder(io.BytesIO(data), window=100),
        lambda: NativeFeeder(native, data),
        lambda: NativeFeeder(native, data, window=100),
    ]


@pytest.mark.parametrize("name", CASES)
def test_refused_with_a_code(native: Any, name: str) -> None:
    data, code = CASES[name]
    for number, attempt in enumerate(attempts(native, data)):
        with pytest.raises(FeederError) as caught:
            attempt()
        assert caught.value.code is code, f"door {number}: {caught.value}"
        assert str(caught.value)


def test_error_names_the_node_and_the_place(native: Any) -> None:
    data = GOOD + frame(N(9, [77]).record())
    for attempt in attempts(native, data):
        with pytest.raises(FeederError, match="node 9 waits for node 77") as caught:
            attempt()
        assert (caught.value.node, caught.value.other) == (9, 77)
    with pytest.raises(FeederError, match=f"byte {len(GOOD)}"):
        Feeder(GOOD + frame(b"\x12\x7fabc"))


@pytest.mark.parametrize("metadata", [b"", METADATA])
def test_traces_without_nodes_are_finished(native: Any, metadata: bytes) -> None:
    for attempt in attempts(native, trace([], metadata=metadata)):
        feeder = attempt()
        assert feeder.next()[0] is Next.FINISHED
        assert feeder.is_finished


def test_unknown_fields_and_types_pass_through(native: Any) -> None:
    record = N(0, type=4711).record() + number_field(99, 5) + bytes_field(11, b"\x08\x01")
    data = trace([]) + frame(record)
    for attempt in attempts(native, data):
        _, node = attempt().next()
        assert (node.id, int(node.type)) == (0, 4711)
    assert next(iter(Feeder(data))).message == record


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed, left out or doubled."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        if not changed:
            break
        at = rng.randrange(len(changed))
        choice = rng.randrange(4)
        if choice == 0:
            changed[at] = rng.randrange(256)
        elif choice == 1:
            del changed[at]
        elif choice == 2:
            changed.insert(at, rng.choice([0, 0x7F, 0x80, 0xFF]))
        else:
            del changed[at:]
    return bytes(changed)


def result(make: Any) -> Any:
    """The order of a run, or the code of what was wrong."""
    try:
        feeder = make()
        order = []
        while True:
            answer, node = feeder.next()
            if answer is not Next.NODE:
                return order, answer
            order.append(node.id)
            feeder.done(node.id)
    except FeederError as error:
        return error.code


def test_mutations_end_alike(native: Any) -> None:
    rng = random.Random("mutations")
    for _ in range(600):
        data = mutated(rng, trace(random_nodes(rng, rng.randrange(1, 6), 2)))
        whole = {str(result(lambda: Feeder(data))), str(result(lambda: NativeFeeder(native, data)))}  # noqa: B023
        assert len(whole) == 1, (data, whole)
        window = {
            str(result(lambda: Feeder(data, window=3))),  # noqa: B023
            str(result(lambda: NativeFeeder(native, data, window=3))),  # noqa: B023
        }
        assert len(window) == 1, (data, window)


def test_too_little_memory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def short_of_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("chakra_et.feeder.feeder.scan", short_of_memory)
    with pytest.raises(FeederError, match="not enough memory") as caught:
        Feeder(GOOD)
    assert caught.value.code is Code.OUT_OF_MEMORY
