"""Times and sizes of all tokens of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from chakra_et.columns import Mask, Rows, no_rows
from chakra_et.model import UNKNOWN_NS
from chakra_et.replay.matching import match_communication
from chakra_et.synth.corpus import Corpus, Run
from chakra_et.synth.mixtures import Mixture, mixture
from chakra_et.synth.model import Occurrences
from chakra_et.synth.occurrences import occurrences_of
from chakra_et.synth.sketches import Sketch, sketch
from chakra_et.synth.tokens import FREE
from chakra_et.synth.view import SIZES, RankView


@dataclass
class Durations:
    """What a part holds of durations, by the names of its fields."""

    durations: tuple[Sketch, ...]
    occurrences: tuple[Occurrences, ...]
    apart: tuple[Sketch, ...]
    waits: dict[int, Sketch]
    skew: Sketch
    grain_ns: int


def durations_of(corpus: Corpus, runs: Sequence[Run]) -> Durations:
    """Durations of all tokens; of communication what it took when the last rank was there."""
    took, waited = _transfers(corpus, runs)
    skews = np.concatenate([_skews(run) for run in runs])
    talks = [rank.view.communicates for rank in corpus.ranks]
    waits = _by_token(corpus, waited, talks)
    return Durations(
        *occurrences_of(corpus, took),
        {token: sketch(values) for token, values in sorted(waits.items()) if values.any()},
        sketch(skews),
        _grain([*took, *waited, skews, *(rank.view.delay_ns for rank in corpus.ranks)]),
    )


def _grain(times: list[Rows]) -> int:
    """What all times are multiples of: 1000 ns where a profiler counts microseconds."""
    return max(int(np.gcd.reduce(np.concatenate(times))), 1)


def _transfers(corpus: Corpus, runs: Sequence[Run]) -> tuple[list[Rows], list[Rows]]:
    """Durations of all rows, and how much of each was spent waiting for other ranks.

    What members of one communication have in common is the shortest of their durations.
    """
    took = [rank.view.duration_ns.copy() for rank in corpus.ranks]
    waited = [np.zeros(len(t), np.int64) for t in took]
    at = 0
    for run in runs:
        place = {view.rank: at + i for i, view in enumerate(run.views)}
        rows = {}
        for view in run.views:
            rows[view.rank] = np.full(len(view.trace.nodes), -1, np.int64)
            rows[view.rank][view.order] = np.arange(len(view))
        at += len(run.views)
        if len(run.views) > 1:
            for match in match_communication(run.traces).matches:
                members = [(place[r], int(rows[r][row])) for r, row in match.members.items()]
                if all(row >= 0 for _, row in members):
                    shortest = min(int(took[i][row]) for i, row in members)
                    for i, row in members:
                        waited[i][row] = took[i][row] - shortest
                        took[i][row] = shortest
    return took, waited


def _skews(run: Run) -> Rows:
    """How long after the first rank each one began its first step; none where nothing tells.

    All ranks leave the first communication that they share at the same time.
    """
    views = {view.rank: view for view in run.views}
    for match in match_communication(run.traces).matches if len(views) > 1 else []:
        if match.members.keys() != views.keys():
            continue
        before = [_since_begin(views[rank], row) for rank, row in match.members.items()]
        return np.array([max(before) - own for own in before] if min(before) > 0 else [], np.int64)
    return no_rows()


def _since_begin(view: RankView, row: int) -> int:
    """How long after the begin of the first step a node of the trace ends; 0 if that is unknown."""
    nodes = view.trace.nodes
    first = view.order[view.step == 0]
    if row not in first or (nodes.start_ns[first] == UNKNOWN_NS).any():
        return 0
    return int(nodes.start_ns[row] + nodes.duration_ns[row] - nodes.start_ns[first].min())


def sums_of(corpus: Corpus) -> tuple[int, int]:
    """The durations of all communication, and of all else, in the steps of all ranks, in ns."""
    talks = works = 0
    for rank, unit in zip(corpus.ranks, corpus.unit, strict=True):
        view = rank.view
        inside, mine = unit >= 0, view.communicates
        talks += int(view.duration_ns[inside & mine].sum())
        works += int(view.duration_ns[inside & ~mine].sum())
    return talks, works


def delays_of(corpus: Corpus) -> dict[int, Sketch]:
    delays = [rank.view.delay_ns for rank in corpus.ranks]
    found = _by_token(corpus, delays, [np.ones(len(d), np.bool_) for d in delays])
    return {token: sketch(values) for token, values in sorted(found.items()) if values.any()}


def mixtures_of(corpus: Corpus) -> dict[int, tuple[Mixture | None, Mixture | None, Mixture | None]]:
    """Mixtures of the sizes that tokens leave open."""
    found: dict[int, list[Mixture | None]] = {}
    for place in range(len(SIZES)):
        open_here = np.array([t.sizes[place] == FREE for t in corpus.vocabulary.tokens], np.bool_)
        if open_here.any():
            sizes = [rank.view.sizes[:, place] for rank in corpus.ranks]
            chosen = [open_here[code] for code in corpus.vocabulary.codes]
            for token, values in _by_token(corpus, sizes, chosen).items():
                found.setdefault(token, [None] * len(SIZES))[place] = mixture(values)
    return {token: (m[0], m[1], m[2]) for token, m in sorted(found.items())}


def _by_token(corpus: Corpus, values: list[Rows], chosen: list[Mask]) -> dict[int, Rows]:
    """The values of the chosen rows, by token."""
    code = np.concatenate([c[m] for c, m in zip(corpus.vocabulary.codes, chosen, strict=True)])
    value = np.concatenate([v[m] for v, m in zip(values, chosen, strict=True)])
    if len(code) == 0:
        return {}
    order = np.argsort(code, kind="stable")
    tokens, first = np.unique(code[order], return_index=True)
    return dict(zip(tokens.tolist(), np.split(value[order], first[1:]), strict=True))
