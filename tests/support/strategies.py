"""Random traces, made through the model's own constructors."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from msgspec.structs import replace

from chakra_et.converters.et.wire import field_bytes, tag, varint
from chakra_et.definitions import Kind
from chakra_et.model import (
    UNKNOWN_NS,
    AttributeColumn,
    AttributeKey,
    AttributeTable,
    EdgeKind,
    Edges,
    Metadata,
    MetadataAttribute,
    Nodes,
    Trace,
)
from chakra_et.model.attribute_values import INTEGER_RANGES

U64 = 2**64 - 1
I32 = 2**31


def texts(*, utf8: bool = False) -> st.SearchStrategy[str]:
    """Any text; unless `utf8`, also what stands for bytes that are no UTF-8."""
    clean = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    if utf8:
        return clean
    broken = st.binary(max_size=6).map(lambda data: data.decode("utf-8", "surrogateescape"))
    return clean | broken


def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    ends = st.sampled_from([low, high, 0, 1, 127, 128])
    return ends | st.integers(low, high)


def scalars(kind: Kind, *, utf8: bool = False) -> st.SearchStrategy[Any]:
    """Values of a kind that is no list."""
    if kind in INTEGER_RANGES:
        return _integers(*INTEGER_RANGES[kind])
    if kind is Kind.BOOL:
        return st.booleans()
    if kind is Kind.STRING:
        return texts(utf8=utf8)
    if kind is Kind.BYTES:
        return st.binary(max_size=6)
    return st.floats(width=32 if kind is Kind.FLOAT else 64)


def values(kind: Kind | None, *, utf8: bool = False) -> st.SearchStrategy[Any]:
    """Values of any kind; None for an attribute without value."""
    if kind is None:
        return st.none()
    if kind.name.endswith("_LIST"):
        return st.lists(scalars(Kind(kind - 1), utf8=utf8), max_size=4).map(tuple)
    return scalars(kind, utf8=utf8)


@st.composite
def unknown_fields(draw: st.DrawFn) -> bytes:
    """Fields of a message whose numbers the schema does not know."""
    data = b""
    for _ in range(draw(st.integers(0, 2))):
        number = draw(st.integers(33, 2**29 - 1))
        wire_type = draw(st.sampled_from([0, 1, 2, 5]))
        if wire_type == 2:
            data += field_bytes(number, draw(st.binary(max_size=4)))
        elif wire_type == 0:
            data += tag(number, wire_type) + varint(draw(st.integers(0, U64)))
        else:
            data += tag(number, wire_type) + draw(st.binary(min_size=4, max_size=4)) * (
                2 if wire_type == 1 else 1
            )
    return data


@st.composite
def attribute_keys(draw: st.DrawFn, *, utf8: bool = False) -> AttributeKey:
    """Keys of attributes, few enough to meet again."""
    names = st.sampled_from(["a", "b", "is_cpu_op", "n" * 127, "n" * 128]) | texts(
        utf8=utf8
    ).filter(bool)
    return AttributeKey(
        draw(names),
        draw(st.none() | st.sampled_from(Kind)),
        0,
        draw(st.just("") | texts(utf8=utf8)),
        draw(st.just(b"") | unknown_fields()),
    )


@st.composite
def attribute_tables(draw: st.DrawFn, count: int, *, utf8: bool = False) -> AttributeTable:
    """Attributes of `count` nodes; names may repeat within a node."""
    keys = draw(st.lists(attribute_keys(utf8=utf8), max_size=4, unique=True))
    held: dict[AttributeKey, list[tuple[int, Any]]] = {}
    orders = []
    for row in range(count):
        order: list[AttributeKey] = []
        for key in draw(st.lists(st.sampled_from(keys), max_size=5)) if keys else []:
            key = replace(key, occurrence=sum(replace(k, occurrence=0) == key for k in order))
            order.append(key)
            held.setdefault(key, []).append((row, draw(values(key.kind, utf8=utf8))))
        orders.append(tuple(order))
    numbers = {key: number for number, key in enumerate(held)}
    columns = [
        AttributeColumn(key, np.array([r for r, _ in pairs], np.int64), [v for _, v in pairs])
        for key, pairs in held.items()
    ]
    layouts = [tuple(numbers[key] for key in order) for order in dict.fromkeys(orders)] or [()]
    codes = {layout: code for code, layout in enumerate(layouts)}
    layout = [codes[tuple(numbers[key] for key in order)] for order in orders]
    return AttributeTable(count, columns, layouts, np.array(layout, np.int32))


@st.composite
def edges(draw: st.DrawFn, ids: list[int]) -> Edges:
    """Edges of every kind; also from nodes that are not there, to themselves, and twice."""
    sources = st.sampled_from(ids) | st.integers(0, U64) if ids else st.integers(0, U64)
    kinds = st.sampled_from([kind for kind in EdgeKind if kind is not EdgeKind.CALL])
    offsets, found = [0], []
    for _ in ids:
        found += [(s, EdgeKind.CALL, False) for s in draw(st.lists(sources, max_size=2))]
        found += draw(st.lists(st.tuples(sources, kinds, st.booleans()), max_size=4))
        offsets.append(len(found))
    return Edges(
        np.array(offsets, np.int64),
        np.array([source for source, _, _ in found], np.uint64),
        np.array([kind for _, kind, _ in found], np.uint8),
        np.array([inferred for _, _, inferred in found], np.bool_),
    )


def times() -> st.SearchStrategy[int]:
    """Times in ns: none, whole microseconds, others, and the longest."""
    longest = 2**63 - 1
    return st.one_of(
        st.sampled_from([0, 1, 499, 500, 501, 1000, 1500, longest]),
        st.integers(0, longest // 1000).map(lambda micros: micros * 1000),
        st.integers(0, longest),
    )


@st.composite
def traces(draw: st.DrawFn, *, utf8: bool = False) -> Trace:
    """Traces of a few nodes with whatever a trace can hold."""
    ids = draw(st.lists(_integers(0, U64), max_size=5))
    count = len(ids)

    def column(strategy: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(strategy, min_size=count, max_size=count))

    names = draw(st.lists(texts(utf8=utf8), min_size=1, max_size=3, unique=True))
    text = texts(utf8=utf8).map(lambda t: t.encode("utf-8", "surrogateescape"))
    ios = draw(st.lists(st.tuples(text, text, text, unknown_fields()), max_size=3))
    codes = st.integers(-1, len(ios) - 1)
    extra = {row: data for row in range(count) if (data := draw(unknown_fields()))}
    nodes = Nodes(
        id=np.array(ids, np.uint64),
        type=np.array(column(st.integers(0, 9) | st.integers(-I32, I32 - 1)), np.int32),
        name_code=np.array(column(st.integers(0, len(names) - 1)), np.int32),
        names=names,
        start_ns=np.array(column(st.just(UNKNOWN_NS) | times()), np.int64),
        duration_ns=np.array(column(times()), np.int64),
        input_code=np.array(column(codes), np.int32),
        output_code=np.array(column(codes), np.int32),
        texts=ios,
        attributes=draw(attribute_tables(count, utf8=utf8)),
        extra=extra,
        exact_start=np.array(column(st.booleans()), np.bool_),
        exact_duration=np.array(column(st.booleans()), np.bool_),
    )
    keys = draw(st.lists(attribute_keys(utf8=utf8), max_size=3))
    metadata = Metadata(
        draw(st.sampled_from(["", "1.0.0"] if keys else ["1.0.0"])),  # it may tell them from a node
        [MetadataAttribute(key, draw(values(key.kind, utf8=utf8))) for key in keys],
        draw(unknown_fields()),
    )
    return Trace(nodes, draw(edges(ids)), metadata)
