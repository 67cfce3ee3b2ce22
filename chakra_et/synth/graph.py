"""Chains as graphs: states where something is decided, and the tokens between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.synth.chain import Contexts, Events, Order, Sequences, codes, visits

END: Final = -1
"""The target of an edge with which a sequence ends."""
MOST_TOKENS: Final = 1 << 24
"""No sequence is longer."""


class ChainGraph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Edges between states, ordered by `source`, each with `length` of the `tokens` on its way.

    `counts` says by class of ranks how often it was taken. The chain of key k begins at `start[k]`,
    -1 for an unknown key; its sequences had the lengths `lengths[k]`, in a class c `times[c][k]`
    times each. Ranks of no class are class 0.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]
    length: tuple[int, ...]
    tokens: tuple[int, ...]
    start: tuple[int, ...]
    lengths: tuple[tuple[int, ...], ...]
    times: tuple[tuple[tuple[int, ...], ...], ...]

    def __post_init__(self) -> None:
        edges, states = len(self.source), max(self.source, default=-1) + 1
        if not {edges} == {len(self.target), len(self.length), *map(len, self.counts)}:
            raise ValueError("columns of a chain differ in length")
        if list(self.source) != sorted(self.source) or min(self.source, default=0) < 0:
            raise ValueError("edges of a chain are not in order")
        if any(not END <= t < states for t in (*self.target, *self.start)):
            raise ValueError("a chain leads to a state that it does not have")
        inner = [n for n, t in zip(self.length, self.target, strict=True) if t != END]
        if min(self.length, default=0) < 0 or min(inner, default=1) < 1:
            raise ValueError("an edge of a chain has no token")
        if sum(self.length) != len(self.tokens) or not counted(self.counts):
            raise ValueError("a chain has other tokens or counts than its edges tell")
        if not {len(self.start)} == {len(self.lengths), *map(len, self.times)}:
            raise ValueError("keys of a chain differ in number")
        if len(self.times) != len(self.counts):
            raise ValueError("classes of a chain differ in number")
        for lengths, *times in zip(self.lengths, *self.times, strict=True):
            if not {len(lengths)} == set(map(len, times)) or not counted(times):
                raise ValueError("lengths of a chain lack counts")
            if not all(0 <= n <= MOST_TOKENS for n in lengths):
                raise ValueError(f"a sequence has a length outside 0 to {MOST_TOKENS:,}")
        for counts, of_class in zip(self.counts, self.times, strict=True):
            self._expect_ways(counts, of_class)

    def _expect_ways(self, counts: tuple[int, ...], times: tuple[tuple[int, ...], ...]) -> None:
        """Wherever a class may come, it must have a way to go on."""
        on = {state for state, count in zip(self.source, counts, strict=True) if count}
        met = {state for state, count in zip(self.target, counts, strict=True) if count}
        met |= {state for state, own in zip(self.start, times, strict=True) if any(own)}
        if met - {END} - on:
            raise ValueError("a class of ranks has no way out of a state that it comes to")


def counted(counts: Sequence[tuple[int, ...]]) -> bool:
    """Whether columns of counts, one for each class, have no total below 1."""
    return min(map(min, filter(None, counts)), default=0) >= 0 and all(
        sum(column) > 0 for column in zip(*counts, strict=True)
    )


def chain_graph(
    sequences: Sequences, orders: dict[int, Order], keys: int, group: Rows | None = None
) -> ChainGraph:
    """The graph of the chains of all keys, each of the order of its kind.

    `group` is the class of ranks of each sequence, 0 for none.
    """
    group = np.zeros(len(sequences), np.int64) if group is None else group
    events = Events.of(sequences)
    state = states_of(sequences, events, orders)
    transitions = _transitions(events, state, group)
    starts = np.full(keys, -1, np.int64)
    starts[sequences.key] = state[events.place == 0]
    return _joined(sequences, starts, *transitions, events.end, group)


def states_of(sequences: Sequences, events: Events, orders: dict[int, Order]) -> Rows:
    """The context of each event, of the order of its kind."""
    wanted = [orders[kind] for kind in sequences.kind.tolist()]
    order = np.array([own.tokens for own in wanted], np.int64)[events.sequence]
    counts = np.array([own.counts for own in wanted], np.bool_)[events.sequence]
    contexts = Contexts(sequences, events)
    state = contexts.code.copy()
    base = int(state.max(initial=0)) + 1
    for number in range(1, int(order.max(initial=0)) + 1):
        code = contexts.longer()
        here = order == number
        state[here] = code[here] + base
        base += int(code.max(initial=0)) + 1
    state = np.unique(state, return_inverse=True)[1].reshape(-1)
    return codes(state, np.where(counts, visits(events, state), 0))


def _transitions(events: Events, state: Rows, group: Rows) -> tuple[Rows, Rows, Rows, Rows]:
    """Distinct states, symbols and the states they lead to, and how often by class."""
    after = np.where(events.symbol == events.end, END, np.append(state[1:], END))
    steps = codes(state, events.symbol, after + 1)
    _, first, of = np.unique(steps, return_index=True, return_inverse=True)
    counts = np.zeros((int(group.max(initial=0)) + 1, len(first)), np.int64)
    np.add.at(counts, (group[events.sequence], of.reshape(-1)), 1)
    order = np.argsort(state[first], kind="stable")
    first = first[order]
    return state[first], events.symbol[first], after[first], counts[:, order]


def _joined(
    sequences: Sequences,
    starts: Rows,
    source: Rows,
    symbol: Rows,
    target: Rows,
    counts: Rows,
    end: int,
    group: Rows,
) -> ChainGraph:
    """Runs of states between which nothing is decided become one edge."""
    states = int(source.max(initial=-1)) + 1
    outs = np.bincount(source, minlength=states)
    ins = np.bincount(target[target >= 0], minlength=states)
    keep = (outs != 1) | (ins != 1)
    keep[starts[starts >= 0]] = True
    first = np.searchsorted(source, np.arange(states))
    number = np.cumsum(keep) - 1
    rows: list[tuple[int, int]] = []
    texts: list[list[int]] = []
    symbols, targets, kept = symbol.tolist(), target.tolist(), keep.tolist()
    edges = np.flatnonzero(keep[source])
    for edge in edges.tolist():
        text, at = [], edge
        while True:
            if symbols[at] != end:
                text.append(symbols[at])
            to = targets[at]
            if to == END or kept[to]:
                break
            at = int(first[to])
        rows.append((int(number[source[edge]]), END if to == END else int(number[to])))
        texts.append(text)
    begin = [int(number[s]) if s >= 0 else END for s in starts.tolist()]
    lengths, times = _lengths(sequences, len(starts), group)
    columns = list(zip(*rows, strict=True)) if rows else [(), ()]
    return ChainGraph(
        columns[0], columns[1], tuple(map(tuple, counts[:, edges].tolist())),
        tuple(map(len, texts)), tuple(t for text in texts for t in text), tuple(begin),
        lengths, times,
    )  # fmt: skip


def _lengths(
    sequences: Sequences, keys: int, group: Rows
) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[tuple[int, ...], ...], ...]]:
    """The lengths of the sequences of each key, and by class how many had each."""
    classes = int(group.max(initial=0)) + 1
    lengths: list[tuple[int, ...]] = [()] * keys
    times: list[list[tuple[int, ...]]] = [[()] * keys for _ in range(classes)]
    order = np.argsort(sequences.key, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(sequences.key[order])) + 1):
        if len(rows):
            found, of = np.unique(sequences.lengths[rows], return_inverse=True)
            key = int(sequences.key[rows[0]])
            lengths[key] = tuple(found.tolist())
            for number, own in enumerate(times):
                mine = of.reshape(-1)[group[rows] == number]
                own[key] = tuple(np.bincount(mine, minlength=len(found)).tolist())
    return tuple(lengths), tuple(map(tuple, times))


_MOST_CELLS: Final = 1 << 24
"""So many probabilities are held to reach a length exactly; else a walk is cut."""
_ALIKE: Final = 0.05
"""Lengths this close to each other, as a share of them, are those of one band."""


Draw: TypeAlias = "Callable[[int, int], float]"
"""A number from 0 to below 1, for a choice in a state that was met so many times before."""
_BAND: Final = -1
"""In the place of a state: a choice among bands of lengths."""


class Walker:
    """Draws sequences of a graph. A band of lengths is drawn first, then a way that ends in it.

    `chosen` is a class of ranks; without it, sequences are those of all.
    """

    def __init__(self, graph: ChainGraph, chosen: int | None = None) -> None:
        self._start, self._lengths = graph.start, graph.lengths
        columns = graph.times if chosen is None else graph.times[chosen : chosen + 1]
        self._times = [
            tuple(map(sum, zip(*own, strict=True))) for own in zip(*columns, strict=True)
        ]
        counts = np.array(graph.counts, np.int64).reshape(len(graph.counts), -1)
        count = counts.sum(axis=0) if chosen is None else counts[chosen]
        taken = count > 0
        self._source = np.array(graph.source, np.int64)[taken]
        self._target = np.array(graph.target, np.int64)[taken]
        self._length = np.array(graph.length, np.int64)[taken]
        self._tokens = np.array(graph.tokens, np.int64)
        ends = np.cumsum(np.array(graph.length, np.int64))[taken]
        self._text = list(zip((ends - self._length).tolist(), ends.tolist(), strict=True))
        states = int(self._source.max(initial=-1)) + 1
        self._first = np.searchsorted(self._source, np.arange(states + 1))
        total = np.bincount(self._source, count[taken], minlength=states)
        self._share: npt.NDArray[np.float64] = count[taken] / total[self._source]
        self._ways: dict[int, _Ways | None] = {}

    def knows(self, key: int) -> bool:
        """Whether sequences of this key were learned."""
        return 0 <= key < len(self._start) and sum(self._times[key]) > 0

    def walk(self, key: int, draw: Draw) -> Rows:
        """A sequence of a key."""
        told = zip(self._lengths[key], self._times[key], strict=True)
        bands, times = _bands([(length, times) for length, times in told if times])
        band = bands[0]
        if len(bands) > 1:
            band = bands[fall(np.array(times), draw(_BAND, 0))]
        if key not in self._ways:
            self._ways[key] = self._find_ways(key, bands[-1][1])
        return self._walked(self._start[key], band, self._ways[key], draw)

    def _walked(self, state: int, band: tuple[int, int], ways: _Ways | None, draw: Draw) -> Rows:
        pieces = []
        least, left = band
        met = Counter[int]()
        while state != END and left >= 0:
            low, high = int(self._first[state]), int(self._first[state + 1])
            edge = low
            if high - low > 1:
                weight = self._weights(low, high, (least, left), ways)
                edge += fall(weight, draw(state, met[state]))
                met[state] += 1
            begin, end = self._text[edge]
            pieces.append(self._tokens[begin : min(end, begin + left)])
            least, left = least - (end - begin), left - (end - begin)
            state = int(self._target[edge])
            if left <= 0 and ways is None:
                break
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)

    def _weights(
        self, low: int, high: int, left: tuple[int, int], ways: _Ways | None
    ) -> npt.NDArray[np.float64]:
        share = self._share[low:high]
        if ways is None:
            return share
        length = self._length[low:high]
        chance = ways.chance(self._target[low:high], left[0] - length, left[1] - length)
        weight = share * chance
        return weight if weight.sum() > 0 else share

    def _find_ways(self, key: int, longest: int) -> _Ways | None:
        """How likely each state reaches the end with so many tokens; None if that is too much."""
        reached, edges = self._reached(self._start[key])
        if (longest + 1) * len(reached) > _MOST_CELLS:
            return None
        if len(edges) == len(reached):
            # One way out of each state: there is nothing to decide.
            return _Ways({}, np.ones((1, 1)))
        number = {state: i for i, state in enumerate(reached)}
        order = edges[np.argsort(self._length[edges], kind="stable")]
        length = self._length[order]
        source = np.array([number[s] for s in self._source[order].tolist()], np.int64)
        ends = self._target[order] == END
        target = np.array([number.get(t, 0) for t in self._target[order].tolist()], np.int64)
        chance = np.zeros((longest + 1, len(reached)))
        upto = np.searchsorted(length, np.arange(longest + 1), side="right")
        share = self._share[order]
        for left in range(longest + 1):
            n = int(upto[left])
            after = left - length[:n]
            reach = np.where(ends[:n], after == 0, chance[after, target[:n]])
            chance[left] = np.bincount(source[:n], share[:n] * reach, minlength=len(reached))
        return _Ways(number, chance)

    def _reached(self, start: int) -> tuple[list[int], Rows]:
        """The states that a start leads to, and their edges."""
        found, seen = [start], {start}
        for state in found:
            for edge in range(int(self._first[state]), int(self._first[state + 1])):
                to = int(self._target[edge])
                if to != END and to not in seen:
                    seen.add(to)
                    found.append(to)
        pieces = [np.arange(self._first[s], self._first[s + 1]) for s in found]
        return found, np.concatenate(pieces)


def fall(weights: npt.NDArray[Any], number: float) -> int:
    """The place among weights that a number from 0 to below 1 falls on."""
    sums = np.cumsum(weights)
    return min(int(np.searchsorted(sums, number * sums[-1], side="right")), len(sums) - 1)


def _bands(told: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], list[int]]:
    """The least and greatest of lengths that lie close to each other, and how often there were any.

    Within a band the chain decides: whether it was one row more or less says little of the rest.
    """
    bands: list[tuple[int, int]] = []
    counts: list[int] = []
    for length, count in sorted(told):
        if bands and length - bands[-1][1] <= bands[-1][1] * _ALIKE:
            bands[-1] = bands[-1][0], length
            counts[-1] += count
        else:
            bands.append((length, length))
            counts.append(count)
    return bands, counts


class _Ways:
    """How likely each state reaches the end with some number of tokens."""

    def __init__(self, number: dict[int, int], table: npt.NDArray[np.float64]) -> None:
        self._number, self._table = number, table

    def chance(self, states: Rows, least: Rows, most: Rows) -> npt.NDArray[np.float64]:
        """How likely each reaches the end with at least and at most so many tokens."""
        result = np.where(states == END, (least <= 0) & (most >= 0), 0.0)
        rows = zip(states.tolist(), least.tolist(), most.tolist(), strict=True)
        for i, (state, low, high) in enumerate(rows):
            if state != END and high >= 0:
                result[i] = self._table[max(low, 0) : high + 1, self._number[state]].sum()
        return result
