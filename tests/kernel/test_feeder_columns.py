"""The kernel loads ETs for the feeder as Python does, or leaves them to it."""

from __future__ import annotations

import random
from dataclasses import fields as fields_of
from typing import Any

import numpy as np
import pytest
from both_ways import both_ways, needs_kernel
from feeder_traces import METADATA, N, attribute, bytes_field, frame, random_nodes, trace
from fuzz_bytes import BYTES
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.converters.et.record_walk import _count_short
from chakra_et.feeder.frames import fields
from chakra_et.feeder.known_attributes import EDGE_KINDS, EDGE_KINDS_START, ODD
from chakra_et.feeder.scan import _TOLD, scan
from chakra_et.kernel import kernel

LARGEST = 1 << 28
SEEDS = st.integers(0, 1 << 32)


def loaded(data: bytes) -> dict[str, tuple[Any, Any]]:
    """The columns of a trace, and their types."""
    columns = scan(data, LARGEST)
    found = {field.name: getattr(columns, field.name) for field in fields_of(columns)}
    return {
        name: (value.dtype.str, value.tolist()) if isinstance(value, np.ndarray) else (None, value)
        for name, value in found.items()
    }


ATTRIBUTES = (
    attribute("duration_ns", 9, 1499),
    attribute("duration_ns", 9, 5000),  # not the rounded one
    attribute("duration_ns", 9, 1 << 63),
    attribute("duration_ns", 7, 1499),  # another kind
    attribute("duration_ns", 9, 1499) * 2,
    attribute("start_time_ns", 9, 3),
    attribute("is_cpu_op", 27, 1),
    attribute("is_cpu_op", 27, 0),
    attribute("is_cpu_op", 27, 300),
    attribute("is_cpu_op", 29, "true"),
    attribute("edge_kinds", 29, "stream"),
    bytes_field(10, b"\xd8\x01\x01" + bytes_field(1, b"is_cpu_op")),  # the name comes last
    bytes_field(10, bytes_field(1, b"is_cpu_op") + b"\xd8\x01\x01\x01"),
    bytes_field(10, bytes_field(1, b"is_cpu_op") + b"\xd8\x01" + b"\xff" * 12),
    bytes_field(10, b""),
)


def random_trace(rng: random.Random) -> bytes:
    """Nodes that wait for any others, some of them with attributes that columns hold."""
    nodes = random_nodes(rng, 12, 3, cyclic=True)
    for node in rng.sample(nodes, rng.randrange(6)):
        node.attrs += b"".join(rng.sample(ATTRIBUTES, rng.randrange(4)))
    return trace(nodes)


@needs_kernel
@given(SEEDS)
def test_ets_are_loaded_into_the_same_columns(seed: int) -> None:
    fast, slow = both_ways(loaded, random_trace(random.Random(seed)))
    assert fast == slow


@needs_kernel
@given(SEEDS)
def test_damaged_ets_are_refused_alike(seed: int) -> None:
    rng = random.Random(seed)
    data = rng.choice(BYTES)(rng, random_trace(rng), [frame(METADATA)])
    fast, slow = both_ways(loaded, data)
    assert fast == slow


@needs_kernel
@pytest.mark.parametrize("attrs", ATTRIBUTES)
@pytest.mark.parametrize("duration", [0, 1, (1 << 64) - 1])
def test_attributes_that_columns_hold_are_taken_alike(attrs: bytes, duration: int) -> None:
    data = trace([N(1, duration=duration, start=duration, attrs=attrs)])
    fast, slow = both_ways(loaded, data)
    assert fast == slow


def kernel_columns(data: bytes) -> Any:
    module = kernel()
    assert module is not None
    first = len(frame(METADATA))
    buffer = np.frombuffer(data, np.uint8)
    return module.feeder_columns(buffer, first, LARGEST, _TOLD, EDGE_KINDS_START, EDGE_KINDS, ODD)


@needs_kernel
def test_records_that_are_damaged_are_left_to_python() -> None:
    sound = trace([N(1, [0]), N(2)])
    assert kernel_columns(sound) is not None
    for damaged in (sound[:-1], sound + frame(METADATA), sound + b"\xff" * 12):
        assert kernel_columns(damaged) is None


@needs_kernel
@pytest.mark.parametrize("count", [50, 100])
def test_each_field_is_read_once(count: int) -> None:
    """Work is counted, not timed: fields as a walk of them in Python counts them."""
    nodes = random_nodes(random.Random(1), count, 3)
    records = [node.record() for node in nodes]
    *_, read = kernel_columns(trace(nodes))
    assert read == sum(len(list(fields(record, 0, len(record)))) for record in records)


@needs_kernel
@given(SEEDS)
def test_records_are_passed_over_alike(seed: int) -> None:
    rng, module = random.Random(seed), kernel()
    assert module is not None
    data = rng.choice(BYTES)(rng, random_trace(rng), [b"\0"])
    assert module.pass_short(data, 0) == _count_short(data, 0)
