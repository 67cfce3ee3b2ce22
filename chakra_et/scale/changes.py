"""Changes of a trace's columns: collected first, made at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.definitions import Kind
from chakra_et.model import AttributeColumn, Trace
from chakra_et.passes.edit import drop_attribute
from chakra_et.scale.shapes import Texts
from chakra_et.validators.view import ABSENT, TraceView

Pair = tuple[int, int]
"""The codes of a node's inputs and outputs."""


@dataclass
class Resized:
    """What was changed: `changed` counts nodes by what became of them, `left_out` attributes."""

    changed: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


class Changes:
    """What nodes of one trace are to have: sizes, lengths of flat tensors, bytes of named ones."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.view = TraceView(trace)
        self.result = Resized()
        self.texts = Texts(trace.nodes)
        self._numbers: dict[str, npt.NDArray[np.int64]] = {}
        self._tensors: dict[tuple[str, int], int] = {}

    # -----------------------------------------------------------------------------------------
    # Attributes

    def set(self, name: str, rows: Rows, value: int) -> None:
        """Give nodes another number, if they have that attribute."""
        column = self._numbers.setdefault(name, np.full(len(self.trace.nodes), ABSENT, np.int64))
        column[rows] = value

    def scale(self, name: str, rows: Rows, old: int, new: int) -> None:
        """Change a number that counts `old` things, or so many times as many, to count `new`."""
        for row, value in zip(rows.tolist(), self.view.integers(name)[rows].tolist(), strict=True):
            if value != ABSENT:
                self.set(name, np.array([row]), in_proportion(value, old, new))

    def changed(self, name: str, row: int) -> bool:
        """Whether a node gets another number."""
        return name in self._numbers and self._numbers[name][row] != ABSENT

    def leave_out(self, name: str, rows: Rows) -> None:
        """Take an attribute from nodes that have it, and count it."""
        table = self.trace.nodes.attributes
        there = rows[table.present(name)[rows]]
        if len(there):
            drop_attribute(table, name, there)
            self.result.left_out[name] += len(there)

    # -----------------------------------------------------------------------------------------
    # Tensors

    def pairs(self, rows: Rows) -> list[tuple[Pair, Rows]]:
        """The rows of nodes with equal texts of inputs and outputs, and these texts' codes."""
        nodes = self.trace.nodes
        codes = np.stack([nodes.input_code[rows], nodes.output_code[rows]], axis=1)
        return [
            ((first, second), rows[(codes == (first, second)).all(axis=1)])
            for first, second in np.unique(codes, axis=0).tolist()
        ]

    def element(self, pair: Pair, size_bytes: int) -> int:
        """Bytes of an element; 1 where no text tells, or where it does not divide the size."""
        told = self.texts.element_bytes(pair[0]) or self.texts.element_bytes(pair[1])
        return told if told and size_bytes and size_bytes % told == 0 else 1

    def put(
        self, rows: Rows, pair: Pair, inputs: Mapping[int, int], outputs: Mapping[int, int]
    ) -> None:
        """Give nodes of equal texts flat tensors of other lengths."""
        self.trace.nodes.input_code[rows] = self.texts.put(pair[0], inputs)
        self.trace.nodes.output_code[rows] = self.texts.put(pair[1], outputs)

    def put_last(self, rows: Rows, length: int) -> None:
        """Give the last input of nodes of equal texts another length."""
        code = int(self.trace.nodes.input_code[rows[0]])
        self.trace.nodes.input_code[rows] = self.texts.put(code, lambda all: [*all[:-1], length])

    def named(self, row: int, side: str) -> list[tuple[str, int]]:
        """Names and bytes of the tensors that a node names on one side."""
        return _pairs(self.trace.nodes.attributes.get(row, side))

    def tensor(self, name: str, size: int, new: int) -> None:
        """Give a tensor of a name and a size other bytes, wherever it is named."""
        self._tensors.setdefault((name, size), new)

    # -----------------------------------------------------------------------------------------

    def finish(self) -> Resized:
        """Write all that was collected into the columns; an account of it."""
        self.texts.finish()
        table = self.trace.nodes.attributes
        for name, wanted in self._numbers.items():
            for column in table.named(name):
                new = wanted[column.rows]
                values = np.where(new == ABSENT, column.values, new)
                column.values = values.astype(np.asarray(column.values).dtype)
        for column in table.columns:
            if column.key.name in ("inputs", "outputs") and self._tensors:
                column.values = [self._renamed(value) for value in column.values]
        return self.result

    def _renamed(self, value: Any) -> Any:
        """Names and bytes in turn, with the bytes that tensors have now."""
        pairs = _pairs(value)
        if not any(pair in self._tensors for pair in pairs):
            return value
        return tuple(
            text for pair in pairs for text in (pair[0], str(self._tensors.get(pair, pair[1])))
        )


def _pairs(value: Any) -> list[tuple[str, int]]:
    """Names and bytes of tensors; none where the attribute says something else."""
    if not isinstance(value, tuple) or not all(str(size).isdecimal() for size in value[1::2]):
        return []
    return [(name, int(size)) for name, size in zip(value[::2], value[1::2], strict=False)]


def in_proportion(value: int, old: int, new: int) -> int:
    """A number that is as many times smaller as a part is, exactly where it is so much a part."""
    return value // old * new if value % old == 0 else round(value * new / old)


def set_plain(trace: Trace, name: str, kind: Kind, rows: Rows, values: list[Any]) -> None:
    """Give nodes an attribute in its usual kind: in its place where they have it, else behind."""
    table = trace.nodes.attributes
    for number, column in enumerate(table.columns):
        key = column.key
        plain = key.kind is kind and not (key.occurrence or key.doc or key.extra)
        if key.name == name and plain and np.isin(rows, column.rows).all():
            table.columns[number] = _replaced(column, rows, values)
            return
    drop_attribute(table, name, rows)
    table.add(name, kind, values, rows)


def _replaced(column: AttributeColumn, rows: Rows, values: list[Any]) -> AttributeColumn:
    """A column with other values for some of its rows."""
    new = list(column.values)
    for place, value in zip(np.searchsorted(column.rows, rows).tolist(), values, strict=True):
        new[place] = value
    return AttributeColumn(column.key, column.rows, new)
