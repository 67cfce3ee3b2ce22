"""What the first record is: the reader, the feeder in Python and the one in C++ agree."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from feeder_traces import METADATA, N, bytes_field, frame, number_field, trace
from native import NativeFeeder

from chakra_et import ChakraError, FormatError, read
from chakra_et.feeder import Code, Feeder, FeederError

NODES = [N(0, name="aten::mm"), N(1, [0], name="aten::add"), N(2, [1], name="nccl")]
NAMED = bytes_field(1, b"rank") + number_field(9, 3)
ATTR = bytes_field(2, NAMED)
REVERSED = bytes_field(2, number_field(9, 3) + bytes_field(1, b"rank"))
BODY = b"".join(frame(node.record()) for node in NODES)


def doors(native: Any, folder: Path, data: bytes) -> list[Any]:
    """How many nodes each door sees; raises what it raises."""
    path = folder / "t.et"
    path.write_bytes(data)

    def drained(feeder: Any) -> int:
        count = 0
        while (node := feeder.next()[1]) is not None:
            feeder.done(node.id)
            count += 1
        return count

    return [
        lambda: len(read(path).nodes),
        lambda: drained(Feeder(data)),
        lambda: drained(Feeder(data, window=2)),
        lambda: drained(NativeFeeder(native, data)),
        lambda: drained(NativeFeeder(native, data, window=2)),
    ]


SOUND = {
    "a version": METADATA,
    "a version and attributes": METADATA + ATTR,
    "attributes alone": ATTR + bytes_field(2, bytes_field(1, b"schema")),
    "an attribute whose value is not known": bytes_field(2, bytes_field(1, b"a") + b"\xfa\x02\x00"),
    "nothing": b"",
    "a version and fields of a later schema": METADATA + number_field(40, 1),
    "a version that is a line": bytes_field(1, b"\n1.0"),
}


@pytest.mark.parametrize("first", SOUND)
def test_the_first_record_is_metadata(native: Any, tmp_path: Path, first: str) -> None:
    data = frame(SOUND[first]) + BODY
    assert [door() for door in doors(native, tmp_path, data)] == [3] * 5


REFUSED = {
    "a node with an id": (frame(N(5, name="first").record()), Code.OLD_SCHEMA),
    "a node with a name": (frame(N(0, name="first").record()), Code.MALFORMED),
    "a node whose name is an attribute by chance": (frame(bytes_field(2, b"ha")), Code.MALFORMED),
    "a node with a type": (frame(N(0).record()), Code.MALFORMED),
    "the metadata's attribute, its name last": (frame(REVERSED), Code.MALFORMED),
    "a tag without a value": (frame(b"\x0a"), Code.MALFORMED),
    "a version that is cut": (frame(b"\x0a\x091.0"), Code.MALFORMED),
    "an attribute that is cut": (
        frame(METADATA + bytes_field(2, NAMED[:-1])), Code.MALFORMED,
    ),
    "a list that holds something else": (
        frame(METADATA + bytes_field(2, bytes_field(1, b"a") + bytes_field(10, b"\x10\x01"))),
        Code.MALFORMED,
    ),
    "a group behind the version": (frame(METADATA + b"\x1b\x1c"), Code.MALFORMED),
    "a field that nobody knows": (frame(number_field(40, 1)), Code.MALFORMED),
    "zeros": (bytes(2) + frame(METADATA), Code.MALFORMED),
}  # fmt: skip


@pytest.mark.parametrize("first", REFUSED)
def test_the_first_record_is_no_metadata(native: Any, tmp_path: Path, first: str) -> None:
    data, code = REFUSED[first]
    reader, *feeders = doors(native, tmp_path, data + BODY)
    with pytest.raises(FormatError):
        reader()
    for number, door in enumerate(feeders):
        with pytest.raises(FeederError) as caught:
            door()
        assert caught.value.code is code, f"door {number}: {caught.value}"


@pytest.mark.parametrize("second", [METADATA, ATTR, METADATA + ATTR])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_metadata_that_come_twice_are_refused_with_their_place(
    native: Any, tmp_path: Path, second: bytes, place: int
) -> None:
    records = [frame(node.record()) for node in NODES]
    records.insert(place, frame(second))
    data = frame(METADATA) + b"".join(records)
    at = len(frame(METADATA)) + sum(map(len, records[:place]))
    reader, *feeders = doors(native, tmp_path, data)
    with pytest.raises(FormatError, match=f"byte {at + 1}: .*two files were joined"):
        reader()
    for door in feeders:
        with pytest.raises(FeederError, match="two files were joined") as caught:
            door()
        assert (caught.value.code, caught.value.offset) == (Code.MALFORMED, at)


def test_an_empty_record_behind_the_first_is_a_node(native: Any, tmp_path: Path) -> None:
    data = trace([N(5)]) + frame(b"")
    assert [door() for door in doors(native, tmp_path, data)] == [2] * 5


def ended(door: Any) -> Any:
    """How many nodes a door sees, or that it refuses, and how."""
    try:
        return door()
    except FeederError as error:
        return Code.OLD_SCHEMA if error.code is Code.OLD_SCHEMA else "refused"
    except ChakraError:
        return "refused"


def test_a_first_record_with_changed_bytes_is_the_same_for_all(native: Any, tmp_path: Path) -> None:
    rng = random.Random("first record")
    first = (
        METADATA + ATTR + bytes_field(2, bytes_field(1, b"a") + bytes_field(10, b"\x0a\x01\x07"))
    )
    for _ in range(250):
        changed = bytearray(rng.choice((first, ATTR, NODES[0].record(), b"\x0a\x0c" + NAMED)))
        for _ in range(rng.choice((1, 1, 2))):
            changed[rng.randrange(len(changed))] = rng.choice((0, 1, 8, 10, 18, 0x7F, 0x80, 0xFF))
        data = frame(bytes(changed)) + BODY
        reader, *feeders = (ended(door) for door in doors(native, tmp_path, data))
        assert len(set(feeders)) == 1, (bytes(changed), feeders)
        # The reader makes a file of today of one of an old schema, where it can.
        assert reader == feeders[0] or feeders[0] is Code.OLD_SCHEMA, (bytes(changed), reader)
