"""A program's collectives and optimizer with the sizes that they have among more ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import CollectiveType, Kind, NodeType
from chakra_et.model import AttributeColumn, Trace
from chakra_et.passes.edit import drop_attribute
from chakra_et.scale.calls import Call, Calls, GroupKey, Rows
from chakra_et.scale.shapes import Texts
from chakra_et.scale.sizes import Rule, padded, part
from chakra_et.validators.view import ABSENT, TraceView

_OPTIMIZER: Final = "optimizer"
_OF_RANKS: Final = ("global_rank_start", "global_rank_stride", "in_split_size", "out_split_size")
"""Attributes that tell ranks of a group, or a number for each: they differ between copies."""
ZERO_2_ALIGNMENT: Final = 2
"""DeepSpeed's ZeRO-2 gives each rank a multiple of so many elements."""
_STATES: Final = 16
"""An optimizer keeps no more numbers than this for each parameter."""


@dataclass(frozen=True)
class Growth:
    """How a family of groups grows along one axis: sizes before and after, and rules by type."""

    old: int
    new: int
    rules: Mapping[int, Rule] = field(default_factory=dict)

    @property
    def divides(self) -> bool:
        """Whether anything is divided among the ranks."""
        return any(rule is not Rule.KEPT for rule in self.rules.values())


@dataclass
class Resized:
    """What was changed: `nodes` counts those by what became of them, `left_out` attributes."""

    changed: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


def resize(trace: Trace, calls: Calls, growth: Mapping[GroupKey, Growth]) -> Resized:
    """Change the sizes of a trace's collectives, in place, by the growth of their groups."""
    resizer = _Resizer(trace)
    # All-gathers come last: sums tell how the parts are cut that they put together.
    gathers = [call.collective == CollectiveType.ALL_GATHER for call in calls.calls]
    for number in sorted(range(len(calls.calls)), key=gathers.__getitem__):
        call = calls.calls[number]
        grows = growth.get(call.group) if call.group is not None else None
        if grows is not None and call.type == NodeType.COMM_COLL:
            resizer.collective(call, calls.rows[calls.call_of == number], grows)
    divided = [grows for grows in growth.values() if grows.divides]
    if divided or resizer.lengths:
        resizer.optimizer(divided[0] if divided else next(iter(growth.values())))
    resizer.finish(calls, growth)
    return resizer.result


class _Resizer:
    """Collects the changes of one trace, and makes them at once.

    `lengths` has, for each flat length of a divided tensor, what it becomes; `_parts` the same for
    the parts of reduce-scatters alone; `_tensors` the new bytes of tensors by name and old bytes.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.result = Resized()
        self.lengths: dict[int, int] = {}
        self._view = TraceView(trace)
        self._texts = Texts(trace.nodes)
        self._sizes: dict[str, npt.NDArray[np.int64]] = {}
        self._tensors: dict[tuple[str, int], int] = {}
        self._parts: dict[int, int] = {}
        self._alignment = 1

    # -----------------------------------------------------------------------------------------
    # Collectives

    def collective(self, call: Call, rows: Rows, grows: Growth) -> None:
        """The nodes of one call, which may differ in their tensors."""
        assert call.collective is not None
        rule = grows.rules.get(call.collective, Rule.KEPT)
        nodes = self.trace.nodes
        codes = np.stack([nodes.input_code[rows], nodes.output_code[rows]], axis=1)
        for pair in np.unique(codes, axis=0).tolist():
            some = rows[(codes == pair).all(axis=1)]
            if rule is Rule.DIVIDED:
                self._divide(call, some, pair, grows)
            elif rule is Rule.PADDED:
                self._pad(call, some, pair, grows)
            elif call.collective == CollectiveType.ALL_REDUCE:
                self._keep_part(call, some, pair, grows)

    def _divide(self, call: Call, rows: Rows, codes: list[int], grows: Growth) -> None:
        """An all-gather of one whole: each rank has a smaller part."""
        element = self._element(codes, call.size_bytes)
        old = (call.size_bytes or 0) // element
        unit = self._alignment if old % self._alignment == 0 else 1
        given = part(old, grows.old, grows.new)
        new = part(old // unit, grows.old, grows.new) * unit
        if unit == 1:
            new = self._parts.get(old, new)
        self._set("comm_size", rows, new * element)
        self._elements(rows, new, new * grows.new)
        if self._texts.lengths(codes[0]) == [old]:
            self._put(rows, codes, {old: given}, {old * grows.old: new * grows.new})
        self.result.changed["all-gathers of smaller parts"] += len(rows)

    def _pad(self, call: Call, rows: Rows, codes: list[int], grows: Growth) -> None:
        """A reduce-scatter of one whole: it is padded for more ranks, which get smaller parts."""
        element = self._element(codes, call.size_bytes)
        old = (call.size_bytes or 0) // element
        own = old // grows.old
        given, made = (self._texts.lengths(code) for code in codes)
        keeps = len(given) > 1 and made == [own] == given[-1:]
        pieces = given[:-1] if keeps else given
        new = padded(_pieces(pieces, old, grows.old, keeps), grows.new)
        self._set("comm_size", rows, new * element)
        self._elements(rows, new, new // grows.new)
        self._parts[own] = new // grows.new
        after = {own: new // grows.new, old: new}
        # What later nodes read of it is as long as what it writes: the part, or all in its place.
        self.lengths |= {length: after[length] for length in made if length in after}
        inputs = after if given == [old] and made == [own] else {}
        self._put(rows, codes, inputs, after)
        if keeps:
            self._put_last(rows, new // grows.new)
        self._name_parts(rows, {own * element: new // grows.new * element, old * element:
                                new * element})  # fmt: skip
        self.result.changed["reduce-scatters into smaller parts"] += len(rows)

    def _keep_part(self, call: Call, rows: Rows, codes: list[int], grows: Growth) -> None:
        """An all-reduce of which each rank keeps its part and adds to it (ZeRO-2)."""
        element = self._element(codes, call.size_bytes)
        whole = (call.size_bytes or 0) // element
        own = whole // grows.old
        given, made = (self._texts.lengths(code) for code in codes)
        if len(given) < 2 or made != [own] or given[-1] != own:
            return
        new = whole // grows.new
        self._alignment = ZERO_2_ALIGNMENT
        self.lengths[own] = new
        self._put(rows, codes, {}, {own: new})
        self._put_last(rows, new)
        self._name_parts(rows, {own * element: new * element})
        self.result.changed["all-reduces of which a smaller part is kept"] += len(rows)

    # -----------------------------------------------------------------------------------------
    # The optimizer

    def optimizer(self, grows: Growth) -> None:
        """The optimizer's work on a rank's part of the weights, where phases tell it."""
        nodes = self.trace.nodes
        phases = self._view.texts("phase")
        done = self._sizes.get("comm_size")
        for row in np.flatnonzero(phases == _OPTIMIZER).tolist():
            codes = [int(nodes.input_code[row]), int(nodes.output_code[row])]
            if nodes.type[row] == NodeType.COMP:
                self._step(row, codes, grows)
            elif done is None or done[row] == ABSENT:
                self._put(np.array([row]), codes, self.lengths, {})
        for column in nodes.attributes.columns:
            if column.key.name in ("inputs", "outputs") and self._tensors:
                column.values = [self._named(value) for value in column.values]

    def _step(self, row: int, codes: list[int], grows: Growth) -> None:
        lengths = {*self._texts.lengths(codes[0]), *self._texts.lengths(codes[1])}
        if not grows.divides or len(lengths) != 1 or min(lengths) <= 0:
            return
        (old,) = lengths
        new = part(old, grows.old, grows.new)
        self._put(np.array([row]), codes, {old: new}, {old: new})
        for name in ("num_ops", "tensor_size"):
            value = self._view.integers(name)[row]
            if value != ABSENT:
                self._set(name, np.array([row]), _in_proportion(int(value), old, new))
        duration = self.trace.nodes.duration_ns
        duration[row] = _in_proportion(int(duration[row]), old, new)
        for name, size in _pairs(self.trace.nodes.attributes.get(row, "inputs")):
            if size % old == 0 and 0 < size // old <= _STATES:
                self._tensors.setdefault((name, size), size // old * new)
        self.result.changed["optimizer steps on smaller parts"] += 1

    def _named(self, value: Any) -> Any:
        """Names and bytes in turn, with the bytes that tensors have now."""
        pairs = _pairs(value)
        if not any(pair in self._tensors for pair in pairs):
            return value
        return tuple(
            text for pair in pairs for text in (pair[0], str(self._tensors.get(pair, pair[1])))
        )

    # -----------------------------------------------------------------------------------------

    def _element(self, codes: list[int], size_bytes: int | None) -> int:
        """Bytes of an element; 1 where no text tells, or where it does not divide the size."""
        told = self._texts.element_bytes(codes[0]) or self._texts.element_bytes(codes[1])
        return told if told and size_bytes and size_bytes % told == 0 else 1

    def _set(self, name: str, rows: Rows, value: int) -> None:
        column = self._sizes.setdefault(name, np.full(len(self.trace.nodes), ABSENT, np.int64))
        column[rows] = value

    def _elements(self, rows: Rows, given: int, made: int) -> None:
        for name, count in (("in_msg_nelems", given), ("out_msg_nelems", made)):
            self._set(name, rows, count)

    def _put(
        self, rows: Rows, codes: list[int], inputs: Mapping[int, int], outputs: Mapping[int, int]
    ) -> None:
        """Give nodes of equal texts other lengths."""
        self.trace.nodes.input_code[rows] = self._texts.put(codes[0], inputs)
        self.trace.nodes.output_code[rows] = self._texts.put(codes[1], outputs)

    def _put_last(self, rows: Rows, length: int) -> None:
        """Give the last input another length."""
        code = int(self.trace.nodes.input_code[rows[0]])
        self.trace.nodes.input_code[rows] = self._texts.put(code, lambda all: [*all[:-1], length])

    def _name_parts(self, rows: Rows, sizes: Mapping[int, int]) -> None:
        """Note the tensors that nodes write, where they have names, and sizes that change."""
        for row in rows.tolist():
            for name, size in _pairs(self.trace.nodes.attributes.get(row, "outputs")):
                if size in sizes:
                    self._tensors[name, size] = sizes[size]

    def finish(self, calls: Calls, growth: Mapping[GroupKey, Growth]) -> None:
        """Write all that was collected into the columns."""
        self._texts.finish()
        table = self.trace.nodes.attributes
        grown = np.zeros(len(self.trace.nodes), np.bool_)
        for number, call in enumerate(calls.calls):
            if call.group is not None:
                rows = calls.rows[calls.call_of == number]
                grown[rows] = True
                if call.group in growth:
                    self._set("pg_size", rows, growth[call.group].new)
        for name, wanted in self._sizes.items():
            for column in table.named(name):
                new = wanted[column.rows]
                values = np.where(new == ABSENT, column.values, new)
                column.values = values.astype(np.asarray(column.values).dtype)
        for name in _OF_RANKS:
            rows = np.flatnonzero(grown & table.present(name))
            if len(rows):
                drop_attribute(table, name, rows)
                self.result.left_out[name] += len(rows)


def _pieces(pieces: list[int], old: int, ranks: int, keeps: bool) -> list[int]:
    """What was divided among the ranks: each tensor, or all as one, as the old padding shows.

    Where it shows nothing, ranks that keep their parts (ZeRO-3) divide each tensor.
    """
    told = min(pieces, default=-1) >= 0
    each, one = (told and padded(p, ranks) == old for p in (pieces, [sum(pieces)]))
    if each and (keeps or not one):
        return pieces
    return [sum(pieces)] if one else [old]


def _in_proportion(value: int, old: int, new: int) -> int:
    """A number that is as many times smaller as a part is, exactly where it is so much a part."""
    return value // old * new if value % old == 0 else round(value * new / old)


def _pairs(value: Any) -> list[tuple[str, int]]:
    """Names and bytes of tensors; none where the attribute says something else."""
    if not isinstance(value, tuple):
        return []
    pairs = zip(value[::2], value[1::2], strict=False)
    return [(name, int(size)) for name, size in pairs if str(size).isdecimal()]


def replaced(column: AttributeColumn, rows: Rows, values: list[Any]) -> AttributeColumn:
    """A column with other values for some of its rows."""
    places = np.searchsorted(column.rows, rows)
    new = list(column.values)
    for place, value in zip(places.tolist(), values, strict=True):
        new[place] = value
    return AttributeColumn(column.key, column.rows, new)


def set_plain(trace: Trace, name: str, kind: Kind, rows: Rows, values: list[Any]) -> None:
    """Give nodes an attribute in its usual kind: in its place where they have it, else behind."""
    table = trace.nodes.attributes
    for number, column in enumerate(table.columns):
        key = column.key
        plain = key.kind is kind and not (key.occurrence or key.doc or key.extra)
        if key.name == name and plain and np.isin(rows, column.rows).all():
            table.columns[number] = replaced(column, rows, values)
            return
    drop_attribute(table, name, rows)
    table.add(name, kind, values, rows)
