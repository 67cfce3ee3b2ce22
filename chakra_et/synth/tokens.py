"""Tokens: what a row is, as far as sequences are made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows, count_up
from chakra_et.definitions import EdgeKind
from chakra_et.synth.view import ABSENT, HOST, SIZES, STREAM, RankView

FREE: Final = -2
"""A size that is drawn from a mixture: it did not repeat."""
_MOST_ATOMS: Final = 4096
_MOST_SLOTS: Final = 32
"""Of a node that waits for more nodes, so many edges are learned."""
_ORDER: Final = {HOST: EdgeKind.PROGRAM, STREAM: EdgeKind.STREAM}
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)

PeerOffset = tuple[tuple[str, int], ...]


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of row.

    `phase` is a place in PHASES, `type` and `collective` are the schema's numbers, `family` and
    `lane` places in the model's lists. `called` says that the caller is the last row before with
    one less `depth` on the lane. `kin` is the family of groups of a collective, `peer` steps along
    axes to the other end of a message. `sizes` are those of SIZES: bytes or FLOP, ABSENT, or FREE.
    `step` begins a step. `waits` are kind and place of the sources of its edges of order: all but
    those of data, which vary more and are one of the token's variants. A place is a lane, or behind
    the lanes one of the model's sources.
    """

    phase: int
    type: int
    family: int
    lane: int
    depth: int = 0
    called: bool = False
    step: bool = False
    collective: int = ABSENT
    kin: int = ABSENT
    peer: PeerOffset | None = None
    sizes: tuple[int, int, int] = (ABSENT, ABSENT, ABSENT)
    waits: tuple[tuple[int, int], ...] = ()

    @property
    def kind(self) -> Token:
        """What it is, wherever it is called from and whatever it waits for."""
        return msgspec.structs.replace(self, depth=0, called=False, waits=())


@dataclass
class Rank:
    """A rank of a run, for learning: its view with families, lanes, groups and peers of the model.

    `kin` is the family of the group of each row, `peer` a place in `offsets`; -1 for none.
    """

    view: RankView
    family: Rows
    lane: Rows
    kin: Rows
    peer: Rows
    role: int


@dataclass
class Slots:
    """Edges of a rank in the order of their tokens' slots.

    Those into row r are at `first[r]` to `first[r + 1]`; `back` counts rows of the source's place:
    1 for the last before the target, and for a further edge of its kind and place from there on.
    The place is the lane for edges that stay on it. Other edges come from rows of one kind, such as
    launches, whatever lies between: theirs is `lanes` + the number of a pair of lane and family.
    """

    first: Rows
    kind: Rows
    place: Rows
    back: Rows


Source = tuple[int, int]
"""Lane and family of the rows that edges to other lanes come from."""


def sources_of(ranks: Sequence[Rank]) -> list[Source]:
    """Where edges to other lanes come from."""
    found: set[Source] = set()
    for rank in ranks:
        view, lane = rank.view, rank.lane
        rows = view.source[lane[view.source] != lane[view.target]]
        found |= set(zip(lane[rows].tolist(), rank.family[rows].tolist(), strict=True))
    return sorted(found)


def slots_of(rank: Rank, lanes: int, sources: Sequence[Source]) -> Slots:
    """The edges of a rank by places and distances."""
    view, lane = rank.view, rank.lane
    first, first_kind = _first_of_lanes(view)
    place = source_places(lane, rank.family, lanes, sources)
    across = lane[view.source] != lane[view.target]
    before = np.where(across, _counts_before(place, view), _counts_before(lane, view))
    before = np.append(before, np.ones_like(first))
    places = np.append(np.where(across, place[view.source], lane[view.source]), lane[first])
    target, kind = np.append(view.target, first), np.append(view.kind, first_kind)
    order = np.lexsort((before, places, kind, target))
    target, kind = target[order], kind[order]
    places, back = places[order], before[order]
    number = count_up(np.bincount(target, minlength=len(view)))
    kept = number < _MOST_SLOTS
    target, kind, places, back = target[kept], kind[kept], places[kept], back[kept]
    run = np.stack([target, kind, places])
    again = np.append(False, (run[:, 1:] == run[:, :-1]).all(axis=0))[: len(target)]
    steps = back.copy()
    steps[1:] = np.where(again[1:], back[1:] - back[:-1], back[1:])
    first = np.zeros(len(view) + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=len(view)), out=first[1:])
    return Slots(first, kind, places, np.maximum(steps, 1))


def source_places(lane: Rows, family: Rows, lanes: int, sources: Sequence[Source]) -> Rows:
    """The place of each row as one that edges to other lanes come from; ABSENT for none."""
    width = max(int(family.max(initial=0)), *(f for _, f in sources), 0) + 1
    table = np.full(lanes * width, ABSENT)
    for number, (own, kind) in enumerate(sources):
        table[own * width + kind] = lanes + number
    return np.asarray(table[lane * width + family])


def _first_of_lanes(view: RankView) -> tuple[Rows, Rows]:
    """The first row of each thread and stream, and the kind of edge that those behind it have.

    They count as waiting for a row before them: in a sample, that of the step before.
    """
    rows, kinds = [], []
    for lane, (what, _) in enumerate(view.lanes):
        kind = _ORDER.get(what)
        mine = np.flatnonzero(view.lane == lane)
        if kind is not None and len(mine):
            rows.append(int(mine[0]))
            kinds.append(int(kind))
    return np.array(rows, np.int64), np.array(kinds, np.int64)


def _counts_before(place: Rows, view: RankView) -> Rows:
    """How many rows of the source's place lie from the source on up to the target."""
    count = len(place)
    order = np.argsort(place, kind="stable")
    placed = place[order] * count + order
    asked = place[view.source] * count
    return np.searchsorted(placed, asked + view.target) - np.searchsorted(
        placed, asked + view.source
    )


def atoms_of(ranks: list[Rank]) -> list[Rows]:
    """For each of SIZES the values that repeat, the most frequent ones if there are very many."""
    found = []
    for place in range(len(SIZES)):
        values, counts = np.unique(
            np.concatenate([r.view.sizes[:, place] for r in ranks]), return_counts=True
        )
        repeat = np.flatnonzero((counts > 1) & (values != ABSENT))
        most = repeat[np.argsort(-counts[repeat], kind="stable")[:_MOST_ATOMS]]
        found.append(np.sort(values[most]))
    return found


@dataclass
class Shape:
    """A variant of a token: kind and place of the source of each edge."""

    token: int
    slots: tuple[tuple[int, int], ...]


class Vocabulary:
    """Tokens by their fields, and their variants; equal rows of all ranks have equal codes."""

    def __init__(
        self, ranks: list[Rank], lanes: int, atoms: list[Rows], offsets: list[PeerOffset]
    ) -> None:
        self.sources = sources_of(ranks)
        self.slots = [slots_of(rank, lanes, self.sources) for rank in ranks]
        begins = np.cumsum([0, *(len(rank.view) for rank in ranks)])

        def slots_at(row: int) -> tuple[tuple[int, int], ...]:
            of = int(np.searchsorted(begins, row, side="right")) - 1
            return _pairs(self.slots[of], row - int(begins[of]))

        order = np.concatenate([_signatures(s, s.kind != EdgeKind.DATA) for s in self.slots])
        fields = np.concatenate([_fields(rank, atoms) for rank in ranks])
        first, code = _distinct(np.column_stack([fields, order]))
        self.tokens = [_token(fields[row].tolist(), slots_at(row), offsets) for row in first]
        every = np.concatenate([_signatures(s, s.kind >= 0) for s in self.slots])
        first, shape = _distinct(np.stack([code, every], axis=1))
        self.shapes = [Shape(int(code[row]), slots_at(row)) for row in first]
        self.codes: list[Rows] = np.split(code, begins[1:-1])
        self.shape_codes: list[Rows] = np.split(shape, begins[1:-1])


def _distinct(table: Rows) -> tuple[list[int], Rows]:
    """The first of each of the distinct rows of a table, in order, and the code of every row."""
    _, first, code = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return first.tolist(), code.reshape(-1)


def _fields(rank: Rank, atoms: list[Rows]) -> Rows:
    """The fields of each row as numbers."""
    view = rank.view
    sizes = [
        np.where((view.sizes[:, i] != ABSENT) & ~np.isin(view.sizes[:, i], atoms[i]), FREE,
                 view.sizes[:, i])
        for i in range(len(SIZES))
    ]  # fmt: skip
    return np.stack(
        [
            view.phase, view.type, rank.family, rank.lane, view.depth,
            view.called.astype(np.int64), view.step_mark.astype(np.int64),
            np.where(view.communicates, view.collective, ABSENT), rank.kin, rank.peer, *sizes,
        ],
        axis=1,
    )  # fmt: skip


def _signatures(slots: Slots, chosen: npt.NDArray[np.bool_]) -> Rows:
    """A number for each row that equal kinds and places of the chosen edges have in common."""
    with np.errstate(over="ignore"):
        before: Rows = np.cumsum(chosen) - chosen
        place = before - np.repeat(np.append(before, 0)[slots.first[:-1]], np.diff(slots.first))
        mark = (slots.kind * 65536 + slots.place + 1).astype(np.uint64) * _MIX
        mark = (mark ^ (mark >> np.uint64(29))) * (_MIX + np.uint64(2) * place.astype(np.uint64))
        mark = (mark ^ (mark >> np.uint64(32))) * chosen
        running = np.append(np.uint64(0), np.cumsum(mark, dtype=np.uint64))
        sums = running[slots.first[1:]] - running[slots.first[:-1]]
    return np.asarray(sums.view(np.int64), np.int64)


def _token(
    fields: list[int], slots: tuple[tuple[int, int], ...], offsets: list[PeerOffset]
) -> Token:
    phase, kind, family, lane, depth, called, step, collective, kin, peer, a, b, c = fields
    return Token(
        phase, kind, family, lane, depth, bool(called), bool(step), collective, kin,
        None if peer < 0 else offsets[peer], (a, b, c),
        tuple(slot for slot in slots if slot[0] != EdgeKind.DATA),
    )  # fmt: skip


def _pairs(slots: Slots, row: int) -> tuple[tuple[int, int], ...]:
    span = slice(int(slots.first[row]), int(slots.first[row + 1]))
    return tuple(zip(slots.kind[span].tolist(), slots.place[span].tolist(), strict=True))
