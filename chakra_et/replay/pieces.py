"""The durations of a run in pieces: whose time each is, before it what delayed the start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.model import Nodes, TimeParts, between_operations
from chakra_et.replay.columns import Columns


class Form(IntEnum):
    """What a piece of time is; `label` is how it is named, after the node it is about."""

    label: str

    def __new__(cls, value: int, label: str) -> Form:
        """A form and its name."""
        member = int.__new__(cls, value)
        member._value_ = value
        member.label = label
        return member

    WORK = 0, "{}"
    AFTER = 1, "Python after {}"
    BEFORE = 2, "Python before {}"
    IN = 3, "Python in {}"
    LATE = 4, "late start of {}"
    CONTENTION = 5, "start of {} beside other streams"


_LABELS: Final = [form.label for form in Form]


@dataclass(frozen=True)
class Pieces:
    """Pieces of the nodes of all ranks, by node and in the order of time; rows are those of a plan.

    `named[i]` is the node that piece i is about: who owns it, what ran before a gap, or what was
    delayed. `form[i]` is a `Form`. `own[i]` says whether the piece is the own part of its node.
    """

    node: Rows
    named: Rows
    ns: Rows
    form: Rows
    own: Mask

    @classmethod
    def of(cls, ranks: Sequence[Columns], parts: Sequence[TimeParts], first: Rows) -> Pieces:
        """The pieces of durations of `parts`; the rows of each rank begin at `first`."""
        found = [cls._of_rank(*rank) for rank in zip(ranks, parts, first.tolist(), strict=True)]
        columns = zip(*((f.node, f.named, f.ns, f.form, f.own) for f in found), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    @classmethod
    def _of_rank(cls, columns: Columns, parts: TimeParts, first: int) -> Pieces:
        named, form = _named(parts, between_operations(columns.trace.nodes, parts))
        node, ns, own = parts.node, parts.ns, parts.own
        for delay, what in ((columns.contention, Form.CONTENTION), (columns.late, Form.LATE)):
            rows = np.flatnonzero(delay)
            node, named = np.append(rows, node), np.append(rows, named)
            ns, form = np.append(delay[rows], ns), np.append(np.full(len(rows), what), form)
            own = np.append(np.zeros(len(rows), np.bool_), own)
        order = np.argsort(node, kind="stable")
        return cls(node[order] + first, named[order] + first, ns[order], form[order], own[order])

    def passed(self, nodes: Rows, took: Rows, whole: Mask, delayed: Mask) -> Pieces:
        """The pieces of some nodes, as far as they make up what each takes.

        What a node takes beyond its pieces is its own, and so is all of it where it is not `whole`.
        Delays of starts count only where nodes are `delayed`.
        """
        begins = np.searchsorted(self.node, nodes, "left")
        counts = np.searchsorted(self.node, nodes, "right") - begins
        step = np.repeat(np.arange(len(nodes)), counts)
        piece = np.arange(len(step)) - np.repeat(np.cumsum(counts) - counts - begins, counts)
        use = whole[step] & (delayed[step] | (self.form[piece] < Form.LATE))
        ns = np.where(use, self.ns[piece], 0)
        until = np.cumsum(ns)
        until -= np.repeat((until - ns)[np.cumsum(counts) - counts], counts)
        ns = np.clip(took[step] - (until - ns), 0, ns)
        rest = took.copy()
        np.subtract.at(rest, step, ns)
        own = self.own[piece]
        ns[own] += rest[step[own]]
        return Pieces(self.node[piece], self.named[piece], ns, self.form[piece], own)

    def by_name(
        self, names: Sequence[list[str]], name_code: Rows, first: Rows
    ) -> list[tuple[str, int]]:
        """Names of pieces and how much each takes in ns, the largest first."""
        rank = np.searchsorted(first, self.named, "right") - 1
        found: Counter[str] = Counter()
        for place, mine in enumerate(names):
            here = rank == place
            key = name_code[self.named[here]] * len(Form) + self.form[here]
            sums = np.zeros(len(mine) * len(Form), np.int64)
            np.add.at(sums, key, self.ns[here])
            for used in np.unique(key).tolist():
                code, form = divmod(used, len(Form))
                found[_LABELS[form].format(mine[code])] += int(sums[used])
        return sorted(found.items(), key=lambda item: (-item[1], item[0]))


def pieces_of(nodes: Nodes, parts: TimeParts, row: int) -> Counter[str]:
    """What the duration of one node consists of: names as in a critical path, and ns of each."""
    mine = slice(*np.searchsorted(parts.node, (row, row + 1)))
    own = TimeParts(parts.node[mine], parts.owner[mine], parts.ns[mine])
    named, form = _named(own, between_operations(nodes, own))
    found: Counter[str] = Counter()
    for about, what, ns in zip(named.tolist(), form.tolist(), own.ns.tolist(), strict=True):
        found[_LABELS[what].format(nodes[about].name)] += ns
    return found


def _named(parts: TimeParts, between: Mask) -> tuple[Rows, Rows]:
    """What each part is named after, and how: time between operations after what ran before."""
    place = np.arange(len(parts.node))
    ran = np.maximum.accumulate(np.where(between, -1, place))
    follows = between & (ran >= 0) & (parts.node[ran] == parts.node)
    inside = between & ~follows & ~parts.gap
    before = between & ~follows & parts.gap
    named = np.where(follows, parts.owner[ran], np.where(before, parts.node, parts.owner))
    choices = [(follows, Form.AFTER), (inside, Form.IN), (before, Form.BEFORE)]
    form = np.full(len(place), int(Form.WORK), np.int64)
    for mask, what in choices:
        form[mask] = what
    return named, form
