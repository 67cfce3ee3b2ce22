"""What rows of each token wait for: variants with distances, also by occurrence in a step."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows, turns_of
from chakra_et.synth.corpus import Corpus
from chakra_et.synth.model import MOST_TURNS, Distances, Variant
from chakra_et.synth.tokens import Rank, Shape
from chakra_et.synth.view import ABSENT

_MOST_DISTANCES: Final = 64


def variants_of(corpus: Corpus) -> tuple[Variant, ...]:
    """The variants of all tokens, and of those that vary of each occurrence in a step as well.

    An occurrence that was seen once is not told apart. In the first of several steps edges from
    before the trace are missing, so that it counts for tokens alone which no other step has.
    """
    vocabulary = corpus.vocabulary
    code, shape = np.concatenate(vocabulary.codes), np.concatenate(vocabulary.shape_codes)
    turn = np.concatenate(
        [turns_of(c, unit) for c, unit in zip(vocabulary.codes, corpus.unit, strict=True)]
    )
    whole = np.concatenate([_whole_steps(rank) for rank in corpus.ranks])
    whole |= ~np.isin(code, code[whole])
    slots = vocabulary.slots
    first = np.append(0, np.cumsum(np.concatenate([np.diff(s.first) for s in slots])))
    back = np.concatenate([s.back for s in slots])
    table = _VariantTable(vocabulary.shapes, shape, first.astype(np.int64), back)
    none = np.full(len(code), ABSENT)
    every = table.variants(code, none, none, np.flatnonzero(whole))
    varies = np.zeros(len(vocabulary.tokens), np.bool_)
    for token, found in groupby(every, key=lambda v: v.token):
        own = list(found)
        varies[token] = len(own) > 1 or any(len(d.values) > 1 for d in own[0].distances)
    role = np.concatenate([np.full(len(rank.view), rank.role) for rank in corpus.ranks])
    rows = np.flatnonzero(whole & varies[code] & (turn < MOST_TURNS))
    seen = (role[rows] * len(varies) + code[rows]) * MOST_TURNS + turn[rows]
    _, where, times = np.unique(seen, return_inverse=True, return_counts=True)
    rows = rows[times[where.reshape(-1)] > 1]
    return tuple(sorted([*every, *table.variants(code, role, turn, rows)],
                        key=lambda v: (v.token, v.role, v.turn)))  # fmt: skip


def _whole_steps(rank: Rank) -> Mask:
    """The rows of steps before which there is another one, or of the only step."""
    step = rank.view.step
    return np.asarray(step > 0 if rank.view.steps > 1 else step >= 0)


@dataclass
class _VariantTable:
    """Shapes of all rows, and their edges: those of row r are at `first[r]` to `first[r + 1]`."""

    shapes: list[Shape]
    shape: Rows
    first: Rows
    back: Rows

    def variants(self, code: Rows, role: Rows, turn: Rows, rows: Rows) -> list[Variant]:
        """The variants of some rows, by token, role and turn."""
        if len(rows) == 0:
            return []
        columns = np.stack([code, role, turn, self.shape], axis=1)[rows]
        distinct, of = np.unique(columns, axis=0, return_inverse=True)
        order = rows[np.argsort(of.reshape(-1), kind="stable")]
        counts = np.bincount(of.reshape(-1))
        ends = np.cumsum(counts)
        found = []
        for (token, of_role, when, shape), begin, end in zip(
            distinct.tolist(), (ends - counts).tolist(), ends.tolist(), strict=True
        ):
            slots = self.shapes[shape].slots
            at = self.first[order[begin:end]][:, None] + np.arange(len(slots))
            backs = self.back[at]
            distances = tuple(_distribution(backs[:, i]) for i in range(len(slots)))
            found.append(Variant(token, when, of_role, end - begin, slots, distances))
        return found


def _distribution(values: Rows) -> Distances:
    """Values and counts; of very many, one value for each of equal shares."""
    found, counts = np.unique(values, return_counts=True)
    if len(found) > _MOST_DISTANCES:
        at = ((np.arange(_MOST_DISTANCES) + 0.5) / _MOST_DISTANCES * len(values)).astype(np.int64)
        found, counts = np.unique(np.sort(values)[at], return_counts=True)
    return Distances(tuple(found.tolist()), tuple(counts.tolist()))
