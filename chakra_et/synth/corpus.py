"""Runs as sequences of tokens: what communicates makes the master sequence, the rest lies between.

A step of a rank is cut at its *marks*: where a phase begins, and where it communicates. All ranks
of a role share the marks of a step, their master sequence; what lies between two marks is each
rank's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Generic, TypeVar

import numpy as np

from chakra_et.build.grid import Grid
from chakra_et.columns import Mask, Rows, no_rows
from chakra_et.definitions import NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet
from chakra_et.shown import number_of, several
from chakra_et.synth.chain import EXACT_KIND, MASTER_KIND, TURN_KIND, Sequences
from chakra_et.synth.tokens import PeerOffset, Rank, Token, Vocabulary, atoms_of
from chakra_et.synth.view import ABSENT, MESSAGES, RankView, view_of
from chakra_et.synth.worlds import PURPOSES, WHOLE, Kin, World, find_grid, kin_of

BEGIN = -1
"""The mark before the first of a step, and after the last."""


@dataclass
class Run:
    """The views of a run's ranks, its grid, and which ranks the group of each row has."""

    traces: TraceSet
    views: list[RankView]
    grid: Grid
    groups: dict[tuple[int, str], tuple[int, ...]]


def read_run(traces: TraceSet) -> Run:
    """A run as it is learned. Raises ChakraError where there is nothing to learn."""
    views = [view_of(trace, rank) for rank, trace in traces.items()]
    if not any(len(view) for view in views):
        raise ChakraError("no node does any work", remedy="Name traces with nodes.")
    size = traces.world_size
    whole = tuple(range(size))
    groups = {}
    for view in views:
        known = {g.name: g.ranks for g in view.trace.groups if view.rank in g.ranks}
        for name in set(view.group[view.type == NodeType.COMM_COLL].tolist()):
            ranks = tuple(sorted(set(known.get(name, whole))))
            groups[view.rank, name] = ranks if ranks[-1] < size else whole
    shapes = sorted({ranks for ranks in groups.values() if len(ranks) > 1})
    return Run(traces, views, find_grid(traces, shapes), groups)


@dataclass
class Corpus:
    """All ranks of runs that lie alike, and their tokens.

    `unit` numbers steps of ranks over all ranks, -1 for rows before the first step; `turning` are
    the rows with which steps and phases begin, `marked` those and all communication. `stands` is
    the token that stands for each one among marks, mostly itself.
    """

    world: World
    ranks: list[Rank]
    families: list[str]
    lanes: list[tuple[int, int]]
    vocabulary: Vocabulary
    left_out: Counter[str]
    unit: list[Rows] = field(default_factory=list)
    turning: list[Mask] = field(default_factory=list)
    marked: list[Mask] = field(default_factory=list)
    stands: Rows = field(default_factory=no_rows)

    @property
    def units(self) -> int:
        """How many steps of ranks there are."""
        return 1 + max(int(unit.max(initial=-1)) for unit in self.unit)


def corpus_of(runs: Sequence[Run]) -> Corpus:
    """The corpus of runs with one grid."""
    grid = runs[0].grid
    views = [view for run in runs for view in run.views]
    families = sorted({name for view in views for name in view.families})
    lanes = sorted({lane for view in views for lane in view.lanes})
    offsets, peers = _peers(views, grid)
    fixed = _fixed(runs, views, grid, peers)
    kin, kin_rows = _kin(runs, grid, fixed)
    world = World(dict(grid.axes), fixed, kin)
    ranks = []
    for view, peer, kin_row in zip(views, peers, kin_rows, strict=True):
        family = np.array([families.index(n) for n in view.families], np.int64)[view.family]
        lane = np.array([lanes.index(own) for own in view.lanes], np.int64)[view.lane]
        role = world.role(grid, view.rank)
        ranks.append(Rank(view, family, lane, kin_row, peer, role))
    vocabulary = Vocabulary(ranks, len(lanes), atoms_of(ranks), offsets)
    left_out = Counter[str]()
    for view in views:
        left_out += view.left_out
        left_out["nodes before the first step"] += int(np.count_nonzero(view.step < 0))
    corpus = Corpus(world, ranks, families, lanes, vocabulary, left_out)
    _cut(corpus)
    corpus.stands = _stands(corpus)
    return corpus


def _cut(corpus: Corpus) -> None:
    """Number the units, and find the marks."""
    units = 0
    for rank in corpus.ranks:
        view = rank.view
        corpus.unit.append(np.where(view.step >= 0, view.step + units, -1))
        units += view.steps
        begins = np.append(True, np.diff(view.step) != 0)[: len(view)]
        turns = np.append(True, np.diff(view.phase) != 0)[: len(view)]
        corpus.turning.append(begins | turns)
        corpus.marked.append(begins | turns | view.communicates)


def _stands(corpus: Corpus) -> Rows:
    """For each token the one that stands for it among marks.

    Where one rank waits and another does not, or is called from elsewhere, one mark has several
    tokens, of which each step of a rank has one. The most frequent one stands for all of them.
    """
    marks = [c[m & (u >= 0)] for c, m, u in _columns(corpus)]
    units = np.concatenate([u[m & (u >= 0)] for _, m, u in _columns(corpus)])
    code = np.concatenate(marks)
    times = np.bincount(code, minlength=len(corpus.vocabulary.tokens))
    kinds: dict[Token, list[int]] = {}
    for token in np.flatnonzero(times).tolist():
        kinds.setdefault(corpus.vocabulary.tokens[token].kind, []).append(token)
    stands = np.arange(len(times))
    for tokens in kinds.values():
        pairs = np.unique(np.stack([units, code])[:, np.isin(code, tokens)], axis=1)
        if len(np.unique(pairs[0])) == pairs.shape[1]:
            stands[tokens] = max(tokens, key=lambda token: (times[token], -token))
    return stands


def _columns(corpus: Corpus) -> Iterator[tuple[Rows, Mask, Rows]]:
    """Tokens, marks and units of each rank."""
    return zip(corpus.vocabulary.codes, corpus.marked, corpus.unit, strict=True)


def _peers(views: list[RankView], grid: Grid) -> tuple[list[PeerOffset], list[Rows]]:
    """Steps along axes to the other ends of messages, and their places for each row."""
    offsets: dict[PeerOffset, int] = {}
    rows = []
    for view in views:
        place = np.full(len(view), ABSENT, np.int64)
        untold = np.isin(view.type, MESSAGES) & (view.peer == ABSENT)
        if untold.any():
            raise ChakraError(
                f"{several(int(untold.sum()), 'message', 'messages')} of rank {view.rank} "
                "without the rank of the other side",
                remedy="Convert all ranks of the run together: the others tell it.",
            )
        for row in np.flatnonzero(view.peer != ABSENT).tolist():
            peer = int(view.peer[row])
            if peer >= grid.world_size:
                raise ChakraError(
                    f"rank {view.rank} sends to or receives from rank {peer}, but the "
                    f"set has {number_of(grid.world_size, 'rank')}",
                    remedy="Name the traces of all ranks; `chakra validate` finds what is wrong.",
                )
            steps = tuple(
                (axis, _signed(int(grid.coordinate(axis, peer) - grid.coordinate(axis, view.rank)),
                               size))
                for axis, size in grid.axes.items()
            )  # fmt: skip
            told = tuple(step for step in steps if step[1])
            place[row] = offsets.setdefault(told, len(offsets))
        rows.append(place)
    return list(offsets), rows


def _signed(steps: int, size: int) -> int:
    """Steps along an axis, the short way."""
    steps %= size
    return steps - size if steps > size // 2 else steps


def _fixed(
    runs: Sequence[Run], views: list[RankView], grid: Grid, peers: list[Rows]
) -> tuple[str, ...]:
    """The axes along which ranks have other messages, or collectives of other groups.

    Messages have an order, which two ranks that exchange them do not share.
    """
    said: dict[int, frozenset[tuple[int, ...]]] = {}
    of_rank = [(run, view) for run in runs for view in run.views]
    for (run, view), peer in zip(of_rank, peers, strict=True):
        talks = np.flatnonzero(view.communicates)
        told: set[tuple[int, ...]] = set()
        for row in talks.tolist():
            group = run.groups.get((view.rank, view.group[row]), ())
            shape = (len(group), group[1] - group[0]) if len(group) > 1 else (0, 0)
            told.add((int(view.type[row]), int(view.collective[row]), int(peer[row]), *shape))
        messages = np.flatnonzero((peer >= 0) & (view.step == 0))
        told |= {
            (int(view.type[row]), int(peer[row]), place)
            for place, row in enumerate(messages.tolist())
        }
        said[view.rank] = said.get(view.rank, frozenset()) | told
    fixed = []
    for axis in grid.axes:
        for rank, mine in said.items():
            other = int(grid.placed(rank, {axis: 0}))
            if said.get(other, mine) != mine:
                fixed.append(axis)
                break
    return tuple(fixed)


def _kin(
    runs: Sequence[Run], grid: Grid, fixed: tuple[str, ...]
) -> tuple[tuple[Kin, ...], list[Rows]]:
    """Families of groups, and the family of each row."""
    purposes: dict[tuple[str, ...], list[tuple[int, ...]]] = {}
    keys = []
    for run in runs:
        told = {g.name: g.description for t in run.traces.values() for g in t.groups}
        for view in run.views:
            own = _keys(run, view, told)
            keys.append(own)
            for key, ranks in own.values():
                if ranks not in purposes.setdefault(key, []):
                    purposes[key].append(ranks)
    kin = {}
    for number, (key, groups) in enumerate(sorted(purposes.items())):
        made = kin_of(key[0], groups, grid, fixed)
        if made.name not in PURPOSES or (made.name in grid.axes and not made.along(made.name)):
            made = Kin(f"groups{number}", made.across, made.places)
        kin[key] = number, made
    names = [k.name for _, k in kin.values()]
    families = tuple(
        k if names.count(k.name) == 1 else Kin(f"groups{n}", k.across, k.places)
        for n, k in kin.values()
    )
    rows = []
    for view, own in zip((v for run in runs for v in run.views), keys, strict=True):
        talks = view.type == NodeType.COMM_COLL
        place = np.full(len(view), ABSENT, np.int64)
        for name, (key, _) in own.items():
            place[talks & (view.group == name)] = kin[key][0]
        rows.append(place)
    return families, rows


def _keys(
    run: Run, view: RankView, told: dict[str, str]
) -> dict[str, tuple[tuple[str, ...], tuple[int, ...]]]:
    """What tells the families of a rank's groups apart: purpose, shape, and which of equal ones."""
    found: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {}
    seen = Counter[tuple[str, ...]]()
    names = sorted(name for rank, name in run.groups if rank == view.rank)
    for name in names:
        ranks = run.groups[view.rank, name]
        purpose = told.get(name, "") if told.get(name, "") in PURPOSES else WHOLE
        span = "-".join(str(r - ranks[0]) for r in ranks[:2]) + f"x{len(ranks)}"
        key = (purpose, span)
        seen[key] += 1
        found[name] = (*key, str(seen[key])), ranks
    return found


Pair = tuple[int, int]


Thing = TypeVar("Thing", bound=tuple[int, ...])


class Places(Generic[Thing]):
    """Numbers of things in the order of their first appearance."""

    def __init__(self) -> None:
        self.of: dict[Thing, int] = {}

    def __call__(self, thing: Thing) -> int:
        return self.of.setdefault(thing, len(self.of))


@dataclass
class Parsed:
    """Units as sequences, of three levels.

    `marks` are pairs of tokens: of the row before a mark and of the mark, so that marks of one kind
    at different places differ; BEGIN for no row, or where rows before are not told (`before`).
    Sequences hold, by key, from 0 on for each role the `turns` of steps (marks with which phases
    begin), then the other marks between two turns (`spans`), then tokens between two marks (`gaps`,
    with the phase of the mark before for a kind), then for each mark the token itself, where
    several stand for one. Spans are pairs of marks, gaps too, with the token of the first one.
    """

    before: bool
    sequences: Sequences
    marks: list[Pair]
    spans: list[Pair]
    gaps: list[tuple[int, int, int]]


def parse(corpus: Corpus, before: bool, blocks: int = 1) -> Parsed:
    """All units as sequences; each is cut into `blocks` first, for holding parts of it out."""
    marks, spans, gaps = Places[Pair](), Places[Pair](), Places[tuple[int, int, int]]()
    rows: list[tuple[int, int, int, int]] = []
    tokens: list[Rows] = []
    units = 0
    for number, rank in enumerate(corpus.ranks):
        for part in _parts(corpus.unit[number], blocks):
            at = _marks_of(corpus, number, part, before, marks)
            for level, key, kind, text in _levels(corpus, number, part, at, spans, gaps):
                rows.append((level, rank.role if level == 0 else key, kind, units))
                tokens.append(text)
            units += 1
    level, key, kind, unit = np.array(rows, np.int64).reshape(-1, 4).T
    first = np.append(0, np.cumsum([len(t) for t in tokens])).astype(np.int64)
    base = np.cumsum([0, corpus.world.roles, len(spans.of), len(gaps.of)])
    joined = np.concatenate(tokens) if tokens else np.zeros(0, np.int64)
    sequences = Sequences(joined, first, key + base[level], kind, unit)
    return Parsed(before, sequences, list(marks.of), list(spans.of), list(gaps.of))


def _parts(unit: Rows, blocks: int) -> Iterator[Rows]:
    """The rows of each unit of a rank, or of each block of it."""
    for number in np.unique(unit[unit >= 0]).tolist():
        low, high = np.searchsorted(unit, [number, number + 1])
        yield from (p for p in np.array_split(np.arange(low, high), blocks) if len(p))


def _marks_of(
    corpus: Corpus, number: int, part: Rows, before: bool, marks: Places[Pair]
) -> dict[int, int]:
    """The marks of some rows that follow each other, by row."""
    code = corpus.vocabulary.codes[number]
    told = corpus.stands[code]
    return {
        row: marks((int(code[row - 1]) if before and row > part[0] else BEGIN, int(told[row])))
        for row in part[corpus.marked[number][part]].tolist()
    }


def _levels(
    corpus: Corpus,
    number: int,
    part: Rows,
    at: dict[int, int],
    spans: Places[Pair],
    gaps: Places[tuple[int, int, int]],
) -> Iterator[tuple[int, int, int, Rows]]:
    """Level, key, kind and tokens of the sequences of some rows."""
    code, phase = corpus.vocabulary.codes[number], corpus.ranks[number].view.phase
    turning = corpus.turning[number]
    turns = [row for row in at if turning[row]]
    yield 0, 0, TURN_KIND, np.array([at[row] for row in turns], np.int64)
    for here, there in pairwise([-1, *turns, int(part[-1]) + 1]):
        inside = [at[row] for row in at if here < row < there]
        if here >= 0 or inside:
            key = spans((at.get(here, BEGIN), at.get(there, BEGIN)))
            yield 1, key, MASTER_KIND, np.array(inside, np.int64)
    for here, there in pairwise([int(part[0]) - 1, *at, int(part[-1]) + 1]):
        if here in at or here + 1 < there:
            own = int(code[here]) if here in at else BEGIN
            key = gaps((at.get(here, BEGIN), at.get(there, BEGIN), own))
            yield 2, key, int(phase[max(here, int(part[0]))]), code[here + 1 : there]
    several = np.bincount(corpus.stands)[corpus.stands] > 1
    for row, mark in at.items():
        if several[code[row]]:
            yield 3, mark, EXACT_KIND, code[row : row + 1]


def flat_of(corpus: Corpus, blocks: int = 1) -> Sequences:
    """All rows of each unit, or block of one, as one sequence."""
    tokens = [
        code[part]
        for code, unit in zip(corpus.vocabulary.codes, corpus.unit, strict=True)
        for part in _parts(unit, blocks)
    ]
    first = np.append(0, np.cumsum([len(t) for t in tokens])).astype(np.int64)
    none = np.zeros(len(tokens), np.int64)
    return Sequences(np.concatenate(tokens), first, none, none, np.arange(len(tokens)))
