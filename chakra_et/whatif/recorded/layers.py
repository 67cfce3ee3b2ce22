"""Which nodes of a recorded step belong to which of its equal layers.

Layers are the longest run of equal parts in the forward pass: operators of the same names and
shapes, over and over. Backward functions belong to the layer whose operators they undo, by the
numbers that autograd gives them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.codes import codes
from chakra_et.columns import Rows
from chakra_et.definitions import EdgeKind
from chakra_et.model import UNKNOWN_NS, Trace
from chakra_et.times import callers
from chakra_et.whatif.chains import program_order
from chakra_et.whatif.edit import MissedError

_PRODUCT: Final = re.compile(
    r"(?<!co)mm(?:_|\b)|gemm|mma_|linear|matmul|conv(?!ert|ersion)|attention", re.IGNORECASE
)
"""Names of operators and kernels with products; `comm` is none."""
_BACKWARD = ("autograd::", "torch::autograd")
_LEAST = 2


@dataclass(frozen=True)
class Layers:
    """Layers of a trace: how many there are, and the layer of each node, -1 for none.

    `part` tells forward (0) from all that follows (1). `step` numbers the steps. `order` has the
    rows as they were run, `place` the place of each row in it, `parent` the row of its caller, and
    `above` that of what it is done for: its caller, or what asked for it or goes on with it.
    `within` is the only step whose forward pass the callers of a node hold, or -1.
    """

    count: int
    layer: Rows
    part: Rows
    step: Rows
    period: int
    order: Rows
    place: Rows
    parent: Rows
    above: Rows
    within: Rows


class _Tree:
    """Who calls whom on the host, and in which order."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.source = trace.source_rows()
        self.target, self.kind = trace.edges.target, trace.edges.kind
        self.parent = callers(trace)
        self.above = _above(self)
        self.names = np.array(trace.nodes.names, object)[trace.nodes.name_code]
        self.order = program_order(trace)
        self.place = np.argsort(self.order)

    def siblings(self, least: int) -> Iterator[Rows]:
        """The nodes that each one calls, in their order, where it calls so many at least."""
        called = self.order[self.parent[self.order] >= 0]
        caller, first = np.unique(self.parent[called], return_index=True)
        together = np.argsort(self.parent[called], kind="stable")
        begins = np.searchsorted(self.parent[called][together], caller)
        ends = np.append(begins[1:], len(called))
        for number in np.argsort(first).tolist():
            if ends[number] - begins[number] >= least:
                yield called[together[begins[number] : ends[number]]]

    def spread(self, label: Rows) -> Rows:
        """Labels of nodes for what is done for these, too: the nearest one's."""
        own = (label >= 0) | (self.above < 0)
        from_above = np.where(own, np.arange(len(label)), self.above)
        # Twice as far up each time: callers are as deep as there are nodes, at most.
        for _ in range(len(label).bit_length()):
            from_above = from_above[from_above]
        return np.asarray(label[from_above])


def _above(tree: _Tree) -> Rows:
    """What each node is done for: its caller, else the call that goes on with it, or the one that
    launched it or asked a worker thread for it; -1 for none.
    """
    nodes = tree.trace.nodes
    above: Rows = tree.parent.copy()
    for column in nodes.attributes.named("rest_of"):
        alone = above[column.rows] < 0
        of = nodes.rows_of(np.asarray(column.values, np.uint64))
        above[column.rows[alone]] = of[alone]
    asks = np.isin(tree.kind, (EdgeKind.LAUNCH, EdgeKind.THREAD)) & (tree.source >= 0)
    asks &= ((above < 0) & ~nodes.attributes.dense("is_cpu_op", False, np.bool_))[tree.target]
    # Of several that ask, the first.
    above[tree.target[asks][::-1]] = tree.source[asks][::-1]
    return above


def find_layers(trace: Trace, rank: int) -> Layers:
    """The layers of a recorded run. Raises MissedError where no equal parts repeat."""
    tree = _Tree(trace)
    backward = np.array([name.startswith(_BACKWARD) for name in trace.nodes.names], np.bool_)
    undone = backward[trace.nodes.name_code]
    layer = np.full(len(trace.nodes), -1, np.int64)
    part = np.zeros(len(trace.nodes), np.int64)
    step = np.full(len(trace.nodes), -1, np.int64)
    runs = list(_runs(tree, undone))
    if not runs:
        raise MissedError(
            f"equal layers in rank {rank}: nothing with products repeats in a forward pass"
        )
    best = max(size for _, _, _, size in runs)
    chosen = [run for run in runs if run[3] == best]
    period, count = chosen[0][1], chosen[0][2]
    if any((p, c) != (period, count) for _, p, c, _ in chosen):
        raise MissedError(f"layers that are alike in all steps of rank {rank}")
    for number, (rows, _, _, _) in enumerate(chosen):
        for place, row in enumerate(rows):
            layer[row] = place // period
            step[row] = number
    layer, step = tree.spread(layer), tree.spread(step)
    ends = [max(rows, key=lambda r: tree.place[r]) for rows, _, _, _ in chosen]
    _undo(tree, layer, part, step, undone, ends)
    return Layers(
        count, layer, part, step, period, tree.order, tree.place, tree.parent, tree.above,
        _within(tree, np.where(part == 0, step, -1)),
    )  # fmt: skip


def _within(tree: _Tree, forward: Rows) -> Rows:
    """For each node the step that its nearest caller with a forward pass holds; -1 for several.

    `forward` has the steps of nodes of forward passes, else -1.
    """
    first, last = np.full(len(forward), len(forward), np.int64), np.full(len(forward), -1, np.int64)
    row = np.flatnonzero(forward >= 0)
    step = forward[row]
    while len(row):
        new = (tree.parent[row] >= 0) & ~((first[row] <= step) & (step <= last[row]))
        np.minimum.at(first, row, step)
        np.maximum.at(last, row, step)
        row, step = np.unique(np.array([tree.parent[row[new]], step[new]]), axis=1)
    return tree.spread(np.where(first == last, last, -1))


def _runs(tree: _Tree, undone: npt.NDArray[np.bool_]) -> Iterator[tuple[list[int], int, int, int]]:
    """Of what each node calls in a forward pass: the longest run of equal parts, their length and
    number.

    A backward pass in between tells one forward pass from the next, so that steps are not layers.
    """
    timed = bool((tree.trace.nodes.start_ns != UNKNOWN_NS).any())
    # Without times, nothing but the order of the file tells what threads did after each other.
    place = tree.place if timed else np.arange(len(undone))
    backward = np.sort(place[undone])
    products = np.array(
        [_PRODUCT.search(name) is not None for name in tree.trace.nodes.names], np.bool_
    )
    tokens = _tokens(tree)
    known: dict[bytes, tuple[int, int, int] | None] = {}
    for rows in tree.siblings(_LEAST * 2):
        every = rows[~undone[rows]]
        passes = np.searchsorted(backward, place[every])
        for some in np.split(every, np.flatnonzero(np.diff(passes)) + 1):
            if len(some) < _LEAST * 2:
                continue
            holds = products[tree.trace.nodes.name_code[some]]
            key = tokens[some].tobytes() + holds.tobytes()
            if key not in known:
                known[key] = _repeats(tokens[some], holds) if holds.any() else None
            found = known[key]
            if found is not None:
                begin, period, count = found
                chosen = some[begin : begin + period * count].tolist()
                yield chosen, period, count, period * count


def _tokens(tree: _Tree) -> Rows:
    """A number for each node, which nodes of one name with the same shapes share."""
    nodes = tree.trace.nodes
    names = _numbers([name.rstrip("0123456789") for name in nodes.names])
    shapes = _numbers([*(text[1] for text in nodes.texts), b""])
    return codes(names[nodes.name_code], shapes[np.maximum(nodes.input_code, -1)])


def _numbers(values: list[Any]) -> Rows:
    """A number for each value, which equal ones share."""
    known: dict[Any, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values], np.int64)


def _repeats(tokens: Rows, products: npt.NDArray[np.bool_]) -> tuple[int, int, int] | None:
    """Where the run of equal parts that covers most begins, the length of a part, and how many.

    A part has a product, and is not one operator over and over.
    """
    before = np.concatenate(([0], np.cumsum(products)))
    best: tuple[int, int, int] | None = None
    covered = 0
    for period in range(1, len(tokens) // 2 + 1):
        if len(tokens) // period * period <= covered:
            continue
        same = np.concatenate(([0], (tokens[:-period] == tokens[period:]).astype(np.int8), [0]))
        edges = np.flatnonzero(np.diff(same))
        begins, ends = edges[::2], edges[1::2]
        holds = before[begins + period] > before[begins]
        begins, ends = begins[holds], ends[holds]
        if not len(begins):
            continue
        longest = int(np.argmax(ends - begins))
        count = int(ends[longest] - begins[longest]) // period + 1
        if (
            count >= _LEAST
            and count * period > covered
            and len(np.unique(tokens[begins[longest] : begins[longest] + period])) > 1
        ):
            best, covered = (int(begins[longest]), period, count), count * period
    return best


def _undo(
    tree: _Tree, layer: Rows, part: Rows, step: Rows, undone: npt.NDArray[np.bool_], ends: list[int]
) -> None:
    """Give backward functions, and the gradients behind them, the layer of what they undo."""
    nodes = tree.trace.nodes
    numbers = nodes.attributes.dense("seq_id", -1, np.int64)
    after = tree.place > min(tree.place[end] for end in ends)
    order, told = tree.order, numbers >= 0
    inside = order[(told & ~undone & (step >= 0))[order]]
    # A number stands at all operators up to the one that takes it.
    number = codes(numbers)
    of_number = np.full(len(numbers) + 1, -1, np.int64)
    of_number[number[inside]] = inside
    above = np.maximum(tree.parent, 0)
    takes = order[(undone & ((tree.parent < 0) | ~undone[above]))[order]]
    sums = np.array(["Accumulate" in name for name in nodes.names], np.bool_)[nodes.name_code]
    # What accumulates a gradient, or has no number, belongs to the function before it.
    latest = np.where((told & ~sums)[takes], np.arange(len(takes)), -1)
    latest = np.maximum.accumulate(latest)
    last = np.where(latest >= 0, of_number[number[takes[latest]]], -1)
    found = last >= 0
    layer[takes[found]], step[takes[found]] = layer[last[found]], step[last[found]]
    part[after & undone] = 1
    layer[:], step[:] = tree.spread(layer), tree.spread(step)
    part[:] = np.maximum(tree.spread(np.where(part > 0, part, -1)), 0)
