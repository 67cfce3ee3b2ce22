"""Columns of the model that files tell in attributes: exact times and the kinds of edges.

Such an attribute is one of the names below in its own kind, without anything added, that agrees
with the fields of its node. Of several the last one counts. What does not agree stays an attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.converters.et.edge_kinds import (
    ParsedKinds,
    edge_marks,
    kinds_texts,
    parse_kinds,
)
from chakra_et.converters.et.wire import WireError
from chakra_et.definitions import Kind
from chakra_et.model import (
    UNKNOWN_NS,
    AttributeColumn,
    AttributeKey,
    AttributeTable,
    CodedTexts,
    EdgeKind,
    Edges,
    Trace,
)

EXACT_START: Final = AttributeKey("start_time_ns", Kind.INT64)
EXACT_DURATION: Final = AttributeKey("duration_ns", Kind.INT64)
EDGE_KINDS: Final = AttributeKey("edge_kinds", Kind.STRING)

_LONGEST_NS: Final = (1 << 63) - 1


def microseconds(time_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rounded once, half to even; 0 where the time is not known."""
    whole, rest = np.divmod(np.where(time_ns == UNKNOWN_NS, 0, time_ns), 1000)
    up = (rest > 500) | ((rest == 500) & (whole % 2 == 1))
    return np.asarray(whole + up, np.int64)


# ---------------------------------------------------------------------------------------------
# From attributes to columns


def take_time(
    table: AttributeTable, key: AttributeKey, micros: npt.NDArray[np.uint64], absent: int
) -> tuple[npt.NDArray[np.int64], Mask]:
    """Times in ns from the field in µs and the attribute of exact times, and where that was told.

    `absent` is the time of a node with neither. Raises WireError for a time that is too long; its
    position is the row of the node.
    """
    exact = np.zeros(len(table), np.bool_)
    too_long = micros > _LONGEST_NS // 1000
    rounded = (np.where(too_long, 0, micros) * np.uint64(1000)).view(np.int64)
    time_ns = np.where(micros == 0, absent, rounded)

    def agrees(column: AttributeColumn) -> Mask:
        return agree_in_time(column.values, micros[column.rows])

    for rows, values in _take(table, key, agrees):
        time_ns[rows], exact[rows] = values, True
    wrong = np.flatnonzero(too_long & ~exact)
    if len(wrong):
        raise WireError("a time of more than 292 years", int(wrong[0]))
    return time_ns, exact


def agree_in_time(exact: npt.NDArray[np.int64], micros: npt.NDArray[np.uint64]) -> Mask:
    """Whether microseconds may be what times in ns were rounded to."""
    possible = (micros <= _LONGEST_NS // 1000 + 1) & (exact >= -500)
    difference = exact.view(np.uint64) - np.where(possible, micros, 0) * np.uint64(1000)
    return np.asarray(possible & (np.abs(difference.view(np.int64)) <= 500))


def take_kinds(
    table: AttributeTable, counts: npt.NDArray[np.int64]
) -> list[tuple[Rows, npt.NDArray[np.uint8], Mask]]:
    """Rows that tell the kinds of their data dependencies; kinds and inferred flags of all these.

    `counts` is the number of data dependencies of each node. No row comes twice.
    """
    parsed = ParsedKinds()

    def agrees(column: AttributeColumn) -> Mask:
        return parsed.are_sound(parsed.codes(column.values, counts[column.rows]))

    return [
        (rows, *parsed.of_edges(parsed.codes(texts, counts[rows])))
        for rows, texts in _take(table, EDGE_KINDS, agrees)
    ]


def _take(
    table: AttributeTable, key: AttributeKey, agrees: Callable[[AttributeColumn], Mask]
) -> list[tuple[Rows, Any]]:
    """Rows and values of the last attribute `key` of each node, where that agrees.

    They leave the table.
    """
    taken = []
    later = np.zeros(len(table), np.bool_)
    for column in reversed(_of_key(table, key)):
        chosen = np.flatnonzero(agrees(column) & ~later[column.rows])
        later[column.rows] = True
        if len(chosen):
            part = column.part(chosen)
            table.remove(column, part.rows)
            taken.append((part.rows, part.values))
    return taken


def _of_key(table: AttributeTable, key: AttributeKey) -> list[AttributeColumn]:
    """The columns of `key` in all its occurrences, in their order."""
    found = [
        column
        for column in table.named(key.name)
        if column.key == AttributeKey(key.name, key.kind, column.key.occurrence)
    ]
    return sorted(found, key=lambda column: column.key.occurrence)


# ---------------------------------------------------------------------------------------------
# From columns to attributes


def attributes_of_columns(trace: Trace, first: int, end: int) -> list[AttributeColumn]:
    """The attributes that tell the columns of some nodes, in the order in which they stand last.

    The nodes are those from row `first` up to `end`. A column is told where its field says less
    than the trace knows, where the file that the trace came from told it, and where an attribute of
    that name would be taken for it.
    """
    nodes, some = trace.nodes, slice(first, end)
    start, duration = nodes.start_ns[some], nodes.duration_ns[some]
    known = start != UNKNOWN_NS
    exact_start = nodes.exact_start[some] | (start == 0) | (start % 1000 != 0)
    exact_start |= _taken_for_time(nodes.attributes, EXACT_START, start, first)
    exact_duration = nodes.exact_duration[some] | (duration % 1000 != 0)
    exact_duration |= _taken_for_time(nodes.attributes, EXACT_DURATION, duration, first)
    return [
        _kinds(nodes.attributes, trace.edges, first, end),
        _column(EXACT_START, start, exact_start & known, first),
        _column(EXACT_DURATION, duration, exact_duration, first),
    ]


def _column(
    key: AttributeKey, values: npt.NDArray[np.int64], told: Mask, first: int
) -> AttributeColumn:
    rows = np.flatnonzero(told)
    return AttributeColumn(key, rows + first, values[rows])


def _taken_for_time(
    table: AttributeTable, key: AttributeKey, time_ns: npt.NDArray[np.int64], first: int
) -> Mask:
    result = np.zeros(len(time_ns), np.bool_)
    for column in _of_key(table, key):
        part = column.within(first, first + len(time_ns))
        rows = part.rows - first
        micros = microseconds(time_ns[rows]).view(np.uint64)
        result[rows] |= agree_in_time(part.values, micros)
    return result


def _kinds(table: AttributeTable, edges: Edges, first: int, end: int) -> AttributeColumn:
    offsets, marks = _data_marks(edges, first, end)
    code, texts = kinds_texts(offsets, marks)
    counts = np.diff(offsets)
    told = np.array(list(map(bool, texts)), np.bool_)[code]
    for column in _of_key(table, EDGE_KINDS):
        part = column.within(first, end)
        for row, text in zip((part.rows - first).tolist(), part.values, strict=True):
            if not told[row] and parse_kinds(text, int(counts[row])) is not None:
                texts.append(",".join([EdgeKind.DATA.label] * int(counts[row])))
                code[row], told[row] = len(texts) - 1, True
    rows = np.flatnonzero(told)
    return AttributeColumn(EDGE_KINDS, rows + first, CodedTexts(code[rows], texts))


def _data_marks(edges: Edges, first: int, end: int) -> tuple[Rows, npt.NDArray[np.uint8]]:
    """Where the data dependencies of each of some nodes begin, and the mark of each of these."""
    places = edges.offsets[first : end + 1]
    some = slice(int(places[0]), int(places[-1]))
    kind, inferred = edges.kind[some], edges.inferred[some]
    data = kind != EdgeKind.CALL
    before = np.zeros(len(data) + 1, np.int64)
    np.cumsum(data, out=before[1:])
    return before[places - places[0]], edge_marks(kind[data], inferred[data])
