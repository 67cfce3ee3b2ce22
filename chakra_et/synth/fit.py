"""Learning: from traces of runs to a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.definitions import NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet
from chakra_et.replay.matching import match_communication
from chakra_et.synth.chain import MASTER_KIND, TURN_KIND, Order, Sequences, by_frequency, choose_orders
from chakra_et.synth.corpus import BEGIN, Corpus, Parsed, Run, corpus_of, flat_of, parse, read_run
from chakra_et.synth.graph import chain_graph
from chakra_et.synth.mixtures import Mixture, mixture
from chakra_et.synth.model import FORMAT, MOST_TURNS, Distances, Evidence, Network, Part, SynthModel, Variant
from chakra_et.synth.phases import PHASES
from chakra_et.synth.sketches import Sketch, sketch
from chakra_et.synth.tokens import FREE, Rank, Shape, turns_of
from chakra_et.synth.view import ABSENT, SIZES

LEARNERS: Final = ("markov", "neural")
TURNS, MASTER = "turns", "master"
_BLOCKS: Final = 5
"""Into so many parts a single step is cut, to hold one of them out at a time."""
_MOST_DISTANCES: Final = 64
_MOST_JOINT: Final = 16
"""Of sets with several roles, the marks of so many steps are kept."""


@dataclass
class Fitted:
    """A model, and what was left out of it, by reason."""

    model: SynthModel
    left_out: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "learner": self.model.learner,
            "parts": [_told(part) for part in self.model.parts],
            "left_out": {what: n for what, n in sorted(self.left_out.items()) if n},
        }


def _told(part: Part) -> dict[str, Any]:
    return {
        "grid": part.world.axes,
        "fixed": part.world.fixed,
        "runs": part.runs,
        "ranks": part.ranks,
        "steps": part.steps,
        "batch": part.batch,
        "nodes_of_a_step": part.nodes,
        "tokens": len(part.tokens),
        "communication_share": part.share,
        "orders": part.evidence.orders,
        "bits_per_node": {
            "by_order": part.evidence.bits,
            "chosen": part.evidence.chosen,
            "frequencies": part.evidence.nothing,
            "neural": part.evidence.neural,
        },
    }


def fit(
    runs: Sequence[TraceSet], *, learner: str = "markov", batch: float | None = None, seed: int = 0
) -> Fitted:
    """Learn runs. Those whose ranks lie alike and that tell one batch are learned together.

    `batch` is that of all runs, else what generated traces tell of themselves. `seed` is for the
    neural learner alone. Raises ChakraError where there is nothing to learn.
    """
    if learner not in LEARNERS:
        raise ChakraError(f"no learner {learner!r}", remedy=f"There are {', '.join(LEARNERS)}.")
    alike: dict[tuple[Any, ...], list[Run]] = {}
    for traces in runs:
        run = read_run(traces)
        key = (tuple(run.grid.axes.items()), batch or _told_batch(traces))
        alike.setdefault(key, []).append(run)
    parts, left_out = [], Counter[str]()
    for (_, told), members in alike.items():
        corpus = corpus_of(members)
        parts.append(_part(corpus, members, told, learner, seed))
        left_out += corpus.left_out
    return Fitted(SynthModel(FORMAT, learner, tuple(parts)), left_out)


def _told_batch(traces: TraceSet) -> float | None:
    """The batch of a step that a generated set tells."""
    for trace in traces.values():
        text = trace.metadata.get("workload")
        if isinstance(text, str):
            try:
                told = msgspec.json.decode(text.encode())
            except msgspec.DecodeError:
                return None
            value = told.get("global_batch") if isinstance(told, dict) else None
            return float(value) if isinstance(value, int) and value > 0 else None
    return None


def _part(
    corpus: Corpus, runs: Sequence[Run], batch: float | None, learner: str, seed: int
) -> Part:
    parsed, evidence, orders = min(
        (_evidence(corpus, parse(corpus, before)) for before in (False, True)),
        key=lambda found: found[1].chosen,
    )
    sequences, roles = parsed.sequences, corpus.world.roles
    master = np.isin(sequences.kind, (TURN_KIND, MASTER_KIND))
    durations, waits = _durations(corpus, runs)
    talks, works = _sums(corpus)
    network: Network | None = None
    if learner == "neural":
        from chakra_et.synth.neural import learn

        network, bits = learn(parsed, _for_evidence(corpus, parsed)[0], corpus, seed)
        evidence = msgspec.structs.replace(evidence, neural=bits)
    keys = roles + len(parsed.spans)
    return Part(
        world=corpus.world,
        runs=len(runs),
        ranks=len(corpus.ranks),
        steps=corpus.units,
        batch=batch,
        nodes=sum(int((u >= 0).sum()) for u in corpus.unit) // max(corpus.units, 1),
        communication_ns=talks // max(corpus.units, 1),
        compute_ns=works // max(corpus.units, 1),
        lanes=tuple(corpus.lanes),
        families=tuple(corpus.families),
        tokens=tuple(corpus.vocabulary.tokens),
        durations=durations,
        delays=_delays(corpus),
        waits=waits,
        variants=_variants(corpus),
        free=_free(corpus),
        marks=tuple(parsed.marks),
        spans=tuple(parsed.spans),
        gaps=tuple(parsed.gaps),
        masters=chain_graph(_chosen(sequences, master), orders, keys),
        fills=chain_graph(_moved(_chosen(sequences, ~master), keys), orders, len(parsed.gaps)),
        joint=_joint(corpus, runs, parsed) if _fits_as_a_whole(corpus) else (),
        evidence=evidence,
        network=network,
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------
# Sequences


def _for_evidence(corpus: Corpus, parsed: Parsed) -> tuple[Sequences, int]:
    """The sequences of which units can be held out, and into how many blocks units are cut."""
    if corpus.units > 1:
        return parsed.sequences, 1
    return parse(corpus, parsed.before, _BLOCKS).sequences, _BLOCKS


def _evidence(corpus: Corpus, parsed: Parsed) -> tuple[Parsed, Evidence, dict[int, Order]]:
    """The orders that held-out steps or ranks choose, and bits for each node of them."""
    parted, blocks = _for_evidence(corpus, parsed)
    choice = choose_orders(parted)
    flat = flat_of(corpus, blocks)
    nodes = max(len(flat.tokens), 1)
    names = {TURN_KIND: TURNS, MASTER_KIND: MASTER, **dict(enumerate(PHASES))}
    evidence = Evidence(
        orders={names[kind]: (o.tokens, o.counts) for kind, o in choice.orders.items()},
        bits=tuple(round(bits / nodes, 6) for bits in choice.bits),
        chosen=round(choice.chosen / nodes, 6),
        nothing=round(by_frequency(flat) / nodes, 6),
    )
    return parsed, evidence, choice.orders


def _chosen(sequences: Sequences, mask: Mask) -> Sequences:
    lengths = sequences.lengths
    kept = np.repeat(mask, lengths)
    first = np.append(0, np.cumsum(lengths[mask]))
    return Sequences(sequences.tokens[kept], first, sequences.key[mask], sequences.kind[mask],
                     sequences.unit[mask])  # fmt: skip


def _moved(sequences: Sequences, keys: int) -> Sequences:
    """The sequences with keys that count from 0."""
    return Sequences(sequences.tokens, sequences.first, sequences.key - keys, sequences.kind,
                     sequences.unit)  # fmt: skip


def _fits_as_a_whole(corpus: Corpus) -> bool:
    """Whether marks of ranks fit together only as they were seen: messages, and several roles."""
    messages = any(token.peer is not None for token in corpus.vocabulary.tokens)
    return corpus.world.roles > 1 or messages


def _joint(
    corpus: Corpus, runs: Sequence[Run], parsed: Parsed
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """The marks of whole steps, of all roles: those of the ranks of one replica."""
    roles = corpus.world.roles
    found: dict[tuple[tuple[int, ...], ...], None] = {}
    numbers = {mark: number for number, mark in enumerate(parsed.marks)}
    at = 0
    for run in runs:
        replicas: dict[int, dict[int, int]] = {}
        for view in run.views:
            first = int(run.grid.placed(view.rank, dict.fromkeys(corpus.world.fixed, 0)))
            replicas.setdefault(first, {})[corpus.ranks[at].role] = at
            at += 1
        for members in replicas.values():
            if len(members) < roles:
                continue
            steps = min(corpus.ranks[i].view.steps for i in members.values())
            for step in range(steps):
                marks = tuple(_marks(corpus, members[role], step, parsed.before, numbers)
                              for role in range(roles))
                found.setdefault(marks, None)
    if not found:
        raise ChakraError(
            f"the ranks have {roles} different programs, and not all are there",
            remedy="Name the traces of all ranks.",
        )
    return tuple(found)[:_MOST_JOINT]


def _marks(
    corpus: Corpus, rank: int, step: int, before: bool, numbers: dict[tuple[int, int], int]
) -> tuple[int, ...]:
    """The marks of a step of a rank."""
    code, here = corpus.vocabulary.codes[rank], corpus.ranks[rank].view.step == step
    rows = np.flatnonzero(corpus.marked[rank] & here).tolist()
    first = int(np.argmax(here))
    return tuple(
        numbers[int(code[r - 1]) if before and r > first else BEGIN, int(code[r])] for r in rows
    )


# -------------------------------------------------------------------------------------------------
# Times, sizes and distances


def _by_token(corpus: Corpus, values: list[Rows], chosen: list[Mask]) -> dict[int, Rows]:
    """The values of the chosen rows, by token."""
    code = np.concatenate([c[m] for c, m in zip(corpus.vocabulary.codes, chosen, strict=True)])
    value = np.concatenate([v[m] for v, m in zip(values, chosen, strict=True)])
    if len(code) == 0:
        return {}
    order = np.argsort(code, kind="stable")
    tokens, first = np.unique(code[order], return_index=True)
    return dict(zip(tokens.tolist(), np.split(value[order], first[1:]), strict=True))


def _durations(
    corpus: Corpus, runs: Sequence[Run]
) -> tuple[tuple[Sketch, ...], dict[int, Sketch]]:
    """Durations of all tokens; of communication what it took when the last rank was there."""
    took, waited = _transfers(corpus, runs)
    every = [np.ones(len(t), np.bool_) for t in took]
    found = _by_token(corpus, took, every)
    talks = [rank.view.communicates for rank in corpus.ranks]
    waits = _by_token(corpus, waited, talks)
    count = len(corpus.vocabulary.tokens)
    return (
        tuple(sketch(found[token]) for token in range(count)),
        {token: sketch(values) for token, values in sorted(waits.items()) if values.any()},
    )


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


def _sums(corpus: Corpus) -> tuple[int, int]:
    """The durations of all communication, and of all else, in the steps of all ranks, in ns."""
    talks = works = 0
    for rank, unit in zip(corpus.ranks, corpus.unit, strict=True):
        view = rank.view
        inside, mine = unit >= 0, view.communicates
        talks += int(view.duration_ns[inside & mine].sum())
        works += int(view.duration_ns[inside & ~mine].sum())
    return talks, works


def _delays(corpus: Corpus) -> dict[int, Sketch]:
    delays = [rank.view.delay_ns for rank in corpus.ranks]
    found = _by_token(corpus, delays, [np.ones(len(d), np.bool_) for d in delays])
    return {token: sketch(values) for token, values in sorted(found.items()) if values.any()}


def _variants(corpus: Corpus) -> tuple[Variant, ...]:
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
    every = table.variants(code, np.full(len(code), ABSENT), np.flatnonzero(whole))
    varies = np.zeros(len(vocabulary.tokens), np.bool_)
    for token, found in groupby(every, key=lambda v: v.token):
        own = list(found)
        varies[token] = len(own) > 1 or any(len(d.values) > 1 for d in own[0].distances)
    rows = np.flatnonzero(whole & varies[code] & (turn < MOST_TURNS))
    seen = code[rows] * MOST_TURNS + turn[rows]
    _, where, times = np.unique(seen, return_inverse=True, return_counts=True)
    rows = rows[times[where.reshape(-1)] > 1]
    return tuple(sorted([*every, *table.variants(code, turn, rows)],
                        key=lambda v: (v.token, v.turn)))  # fmt: skip


def _whole_steps(rank: Rank) -> Mask:
    """The rows of steps before which there is another one, or of the only step."""
    step = rank.view.step
    return np.asarray(step > 0 if rank.view.steps > 1 else step >= 0)


@dataclass
class _VariantTable:
    """Shapes of all rows, and their edges: `first[r]` to `first[r + 1]` of `back` are those of r."""

    shapes: list[Shape]
    shape: Rows
    first: Rows
    back: Rows

    def variants(self, code: Rows, turn: Rows, rows: Rows) -> list[Variant]:
        """The variants of some rows, by token and turn."""
        if len(rows) == 0:
            return []
        columns = np.stack([code[rows], turn[rows], self.shape[rows]], axis=1)
        distinct, of = np.unique(columns, axis=0, return_inverse=True)
        order = rows[np.argsort(of.reshape(-1), kind="stable")]
        counts = np.bincount(of.reshape(-1))
        ends = np.cumsum(counts)
        found = []
        for (token, when, shape), begin, end in zip(
            distinct.tolist(), (ends - counts).tolist(), ends.tolist(), strict=True
        ):
            slots = self.shapes[shape].slots
            at = self.first[order[begin:end]][:, None] + np.arange(len(slots))
            backs = self.back[at]
            distances = tuple(_distribution(backs[:, i]) for i in range(len(slots)))
            found.append(Variant(token, when, end - begin, slots, distances))
        return found


def _distribution(values: Rows) -> Distances:
    """Values and counts; of very many, one value for each of equal shares."""
    found, counts = np.unique(values, return_counts=True)
    if len(found) > _MOST_DISTANCES:
        at = ((np.arange(_MOST_DISTANCES) + 0.5) / _MOST_DISTANCES * len(values)).astype(np.int64)
        found, counts = np.unique(np.sort(values)[at], return_counts=True)
    return Distances(tuple(found.tolist()), tuple(counts.tolist()))


def _free(corpus: Corpus) -> dict[int, tuple[Mixture | None, Mixture | None, Mixture | None]]:
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
