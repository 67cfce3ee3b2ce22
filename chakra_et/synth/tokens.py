"""Tokens: what a row is, as far as sequences are made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows, count_up
from chakra_et.synth.view import ABSENT, SIZES, RankView

FREE: Final = -2
"""A size that is drawn from a mixture: it did not repeat."""
_MOST_ATOMS: Final = 4096
_MOST_SLOTS: Final = 32
"""Of a node that waits for more nodes, so many edges are learned."""
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)

PeerOffset = tuple[tuple[str, int], ...]


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of row.

    `phase` is a place in PHASES, `type` and `collective` are the schema's numbers, `family` and
    `lane` places in the model's lists. `called` says that the caller is the last row before with
    one less `depth` on the lane. `slots` are its other edges: kind and lane of the source. `kin`
    is the family of groups of a collective, `peer` steps along axes to the other end of a message.
    `sizes` are those of SIZES: bytes or FLOP, ABSENT, or FREE. `step` begins a step.
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
    slots: tuple[tuple[int, int], ...] = ()


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
    step_mark: npt.NDArray[np.bool_]
    role: int


@dataclass
class Slots:
    """Edges of a rank in the order of their tokens' slots.

    Those into row r are at `first[r]` to `first[r + 1]`; `back` counts rows of the source's lane:
    1 for the last before the target, and for a further edge of its kind and lane from there on.
    """

    first: Rows
    kind: Rows
    lane: Rows
    back: Rows


def slots_of(rank: Rank) -> Slots:
    """The edges of a rank by lanes and distances."""
    view, lane = rank.view, rank.lane
    before = _counts_before(lane, view.source, view.target)
    source_lane = lane[view.source]
    order = np.lexsort((before, source_lane, view.kind, view.target))
    target, kind = view.target[order], view.kind[order]
    source_lane, back = source_lane[order], before[order]
    place = count_up(np.bincount(target, minlength=len(view)))
    kept = place < _MOST_SLOTS
    target, kind, source_lane, back = target[kept], kind[kept], source_lane[kept], back[kept]
    again = np.append(False, (np.diff(target) == 0) & (np.diff(kind) == 0)
                      & (np.diff(source_lane) == 0)) if len(target) else np.zeros(0, np.bool_)  # fmt: skip
    steps = back.copy()
    steps[1:] = np.where(again[1:], back[1:] - back[:-1], back[1:])
    first = np.zeros(len(view) + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=len(view)), out=first[1:])
    return Slots(first, kind, source_lane, np.maximum(steps, 1))


def _counts_before(lane: Rows, source: Rows, target: Rows) -> Rows:
    """How many rows of the source's lane lie from the source on up to the target."""
    count = len(lane)
    order = np.argsort(lane, kind="stable")
    placed = lane[order] * count + order
    asked = lane[source] * count
    return np.searchsorted(placed, asked + target) - np.searchsorted(placed, asked + source)


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


class Vocabulary:
    """Tokens by their fields; equal rows of all ranks have equal codes."""

    def __init__(self, ranks: list[Rank], atoms: list[Rows], offsets: list[PeerOffset]) -> None:
        self.slots = [slots_of(rank) for rank in ranks]
        tables = [
            _fields(rank, slots, atoms) for rank, slots in zip(ranks, self.slots, strict=True)
        ]
        lengths = np.cumsum([len(rank.view) for rank in ranks])[:-1]
        distinct, first, code = np.unique(
            np.concatenate(tables), axis=0, return_index=True, return_inverse=True
        )
        self.codes: list[Rows] = np.split(code.reshape(-1), lengths)
        begins = np.append(0, lengths)
        self.tokens = []
        for fields, row in zip(distinct.tolist(), first.tolist(), strict=True):
            of = int(np.searchsorted(begins, row, side="right")) - 1
            self.tokens.append(_token(fields, self.slots[of], row - int(begins[of]), offsets))


def _fields(rank: Rank, slots: Slots, atoms: list[Rows]) -> Rows:
    """The fields of each row as numbers; the last is a mark of its slots."""
    view = rank.view
    sizes = [
        np.where((view.sizes[:, i] != ABSENT) & ~np.isin(view.sizes[:, i], atoms[i]), FREE,
                 view.sizes[:, i])
        for i in range(len(SIZES))
    ]  # fmt: skip
    with np.errstate(over="ignore"):
        place = count_up(np.diff(slots.first)).astype(np.uint64)
        mark = (slots.kind * 65536 + slots.lane + 1).astype(np.uint64) * _MIX
        mark = (mark ^ (mark >> np.uint64(29))) * (_MIX + np.uint64(2) * place)
        mark ^= mark >> np.uint64(32)
        running = np.append(np.uint64(0), np.cumsum(mark, dtype=np.uint64))
        signature = (running[slots.first[1:]] - running[slots.first[:-1]]).view(np.int64)
    return np.stack(
        [
            view.phase, view.type, rank.family, rank.lane, view.depth,
            view.called.astype(np.int64), rank.step_mark.astype(np.int64),
            np.where(view.communicates, view.collective, ABSENT), rank.kin, rank.peer,
            *sizes, signature,
        ],
        axis=1,
    )  # fmt: skip


def _token(fields: list[int], slots: Slots, row: int, offsets: list[PeerOffset]) -> Token:
    phase, kind, family, lane, depth, called, step, collective, kin, peer, a, b, c, _ = fields
    span = slice(int(slots.first[row]), int(slots.first[row + 1]))
    pairs = zip(slots.kind[span].tolist(), slots.lane[span].tolist(), strict=True)
    return Token(
        phase, kind, family, lane, depth, bool(called), bool(step), collective, kin,
        None if peer < 0 else offsets[peer], (a, b, c), tuple(pairs),
    )  # fmt: skip
