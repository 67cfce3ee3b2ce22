"""Collectives of more ranks: sizes, and lengths of the tensors that they read and write."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from chakra_et.columns import Rows
from chakra_et.definitions import CollectiveType
from chakra_et.scale.calls import Call
from chakra_et.scale.changes import Changes, Pair
from chakra_et.scale.sizes import Rule, padded, part

ZERO_2_ALIGNMENT: Final = 2
"""DeepSpeed's ZeRO-2 gives each rank a multiple of so many elements."""


@dataclass(frozen=True)
class Growth:
    """How a family of groups grows: sizes before and after, and rules by type of collective."""

    old: int
    new: int
    rules: Mapping[int, Rule] = field(default_factory=dict)

    @property
    def divides(self) -> bool:
        """Whether anything is divided among the ranks."""
        return any(rule is not Rule.KEPT for rule in self.rules.values())


class Collectives:
    """Resizes the collectives of one trace.

    `lengths` has what the lengths of tensors become that sums of gradients write; `parts` the same
    for each rank's part of reduce-scatters.
    """

    def __init__(self, changes: Changes) -> None:
        self.lengths: dict[int, int] = {}
        self._parts: dict[int, int] = {}
        self._changes = changes
        self._alignment = 1

    def resize(self, call: Call, rows: Rows, grows: Growth) -> None:
        """Change the nodes of one call, which may differ in their tensors."""
        assert call.collective is not None
        rule = grows.rules.get(call.collective, Rule.KEPT)
        how: Callable[[int, Rows, Pair, Growth], None] | None = {
            Rule.DIVIDED: self._divide,
            Rule.PADDED: self._pad,
            Rule.KEPT: self._keep_part if call.collective == CollectiveType.ALL_REDUCE else None,
        }[rule]
        if how is not None and call.size_bytes is not None:
            for pair, some in self._changes.pairs(rows):
                how(call.size_bytes, some, pair, grows)

    def _divide(self, size_bytes: int, rows: Rows, pair: Pair, grows: Growth) -> None:
        """An all-gather of one whole: each rank has a smaller part."""
        changes = self._changes
        element = changes.element(pair, size_bytes)
        old = size_bytes // element
        unit = self._alignment if old % self._alignment == 0 else 1
        new = part(old // unit, grows.old, grows.new) * unit
        if unit == 1:
            new = self._parts.get(old, new)
        changes.set("comm_size", rows, new * element)
        if old:
            changes.scale("in_msg_nelems", rows, old, new)
            changes.scale("out_msg_nelems", rows, old * grows.old, new * grows.new)
        if changes.texts.lengths(pair[0]) == [old]:
            given = part(old, grows.old, grows.new)
            changes.put(rows, pair, {old: given}, {old * grows.old: new * grows.new})
        changes.result.changed["all-gathers of smaller parts"] += len(rows)

    def _pad(self, size_bytes: int, rows: Rows, pair: Pair, grows: Growth) -> None:
        """A reduce-scatter of one whole: it is padded for more ranks, which get smaller parts."""
        changes = self._changes
        element = changes.element(pair, size_bytes)
        old = size_bytes // element
        own = old // grows.old
        given, made = (changes.texts.lengths(code) for code in pair)
        keeps = _keeps_part(given, made, own)
        pieces = _pieces(given[:-1] if keeps else given, old, grows.old, keeps)
        new = padded(pieces, grows.new)
        after = {own: new // grows.new, old: new}
        self._parts[own] = after[own]
        # What later nodes read of it is as long as what it writes: the part, or all in its place.
        self.lengths |= {length: after[length] for length in made if length in after}
        changes.set("comm_size", rows, new * element)
        if own:
            changes.scale("in_msg_nelems", rows, old, new)
            changes.scale("out_msg_nelems", rows, own, after[own])
        changes.put(rows, pair, after if given == [old] and made == [own] else {}, after)
        if keeps:
            changes.put_last(rows, after[own])
        self._name(rows, after, element)
        changes.result.changed["reduce-scatters into smaller parts"] += len(rows)

    def _keep_part(self, size_bytes: int, rows: Rows, pair: Pair, grows: Growth) -> None:
        """An all-reduce of which each rank keeps its part and adds to it (ZeRO-2)."""
        changes = self._changes
        element = changes.element(pair, size_bytes)
        whole = size_bytes // element
        own, new = whole // grows.old, whole // grows.new
        given, made = (changes.texts.lengths(code) for code in pair)
        if not _keeps_part(given, made, own):
            return
        self._alignment = ZERO_2_ALIGNMENT
        self.lengths[own] = new
        changes.put(rows, pair, {}, {own: new})
        changes.put_last(rows, new)
        self._name(rows, {own: new}, element)
        changes.result.changed["all-reduces of which a smaller part is kept"] += len(rows)

    def _name(self, rows: Rows, after: Mapping[int, int], element: int) -> None:
        """Give the tensors that nodes write the bytes that they have now, where they have names."""
        sizes = {old * element: new * element for old, new in after.items()}
        for row in rows.tolist():
            for name, size in self._changes.named(row, "outputs"):
                if size in sizes:
                    self._changes.tensor(name, size, sizes[size])


def _keeps_part(given: list[int], made: list[int], own: int) -> bool:
    """Whether a sum is written to a rank's part, which was there before, and is added to."""
    return own > 0 and len(given) > 1 and made == [own] == given[-1:]


def _pieces(pieces: list[int], old: int, ranks: int, keeps: bool) -> list[int]:
    """What was divided among the ranks: each tensor, or all as one, as the old padding shows.

    Where it shows nothing, ranks that keep their parts (ZeRO-3) divide each tensor.
    """
    told = min(pieces, default=-1) >= 0
    each, one = (told and padded(p, ranks) == old for p in (pieces, [sum(pieces)]))
    if each and (keeps or not one):
        return pieces
    return [sum(pieces)] if one else [old]
