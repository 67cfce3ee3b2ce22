"""Learning: from traces of runs to a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.errors import ChakraError
from chakra_et.io.json_text import from_json
from chakra_et.model import TraceSet
from chakra_et.synth.chain import (
    EXACT_KIND,
    MASTER_KIND,
    TURN_KIND,
    Order,
    Sequences,
    by_frequency,
    choose_orders,
)
from chakra_et.synth.classes import classes_of
from chakra_et.synth.corpus import BEGIN, Corpus, Parsed, Run, corpus_of, flat_of, parse, read_run
from chakra_et.synth.graph import ChainGraph, chain_graph
from chakra_et.synth.model import (
    FORMAT,
    Evidence,
    Exact,
    Part,
    SynthModel,
)
from chakra_et.synth.network import Network
from chakra_et.synth.phases import PHASES
from chakra_et.synth.values import delays_of, durations_of, mixtures_of, sums_of
from chakra_et.synth.variants import variants_of

LEARNERS: Final = ("markov", "neural")
EXACT, TURNS, MASTER = "exact", "turns", "master"
_BLOCKS: Final = 5
"""Into so many parts a single step is cut, to hold one of them out at a time."""
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
        "classes_of_ranks": part.classes,
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
                told = from_json(text.encode())
            except msgspec.DecodeError:
                return None
            value = told.get("global_batch") if isinstance(told, dict) else None
            return float(value) if isinstance(value, int) and value > 0 else None
    return None


def _part(
    corpus: Corpus, runs: Sequence[Run], batch: float | None, learner: str, seed: int
) -> Part:
    if learner == "neural":
        # A network has no sequences of single tokens: each one is a mark of its own.
        corpus.stands = np.arange(len(corpus.vocabulary.tokens))
    parsed, evidence, orders = min(
        (_evidence(corpus, parse(corpus, before)) for before in (False, True)),
        key=lambda found: found[1].chosen,
    )
    network: Network | None = None
    if learner == "neural":
        network, evidence = _learned(corpus, parsed, evidence, seed)
    times = durations_of(corpus, runs)
    talks, works = sums_of(corpus)
    drawn = _drawn(corpus, parsed, orders)
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
        sources=tuple(corpus.vocabulary.sources),
        tokens=tuple(corpus.vocabulary.tokens),
        durations=times.durations,
        occurrences=times.occurrences,
        apart=times.apart,
        grain_ns=times.grain_ns,
        delays=delays_of(corpus),
        waits=times.waits,
        skew=times.skew,
        variants=variants_of(corpus),
        free=mixtures_of(corpus),
        marks=tuple(parsed.marks),
        spans=tuple(parsed.spans),
        gaps=tuple(parsed.gaps),
        masters=drawn.masters,
        fills=drawn.fills,
        exact=drawn.exact,
        classes=drawn.classes,
        joint=_joint(corpus, runs, parsed) if _fits_as_a_whole(corpus) else (),
        evidence=evidence,
        network=network,
    )


def _learned(
    corpus: Corpus, parsed: Parsed, evidence: Evidence, seed: int
) -> tuple[Network, Evidence]:
    """A network that draws sequences, and the evidence with how well it foresees."""
    from chakra_et.synth.neural import learn

    held = _for_evidence(corpus, parsed)[0]
    tokens = len(corpus.vocabulary.tokens)
    network, bits = learn(parsed, held, tokens, corpus.world.roles, seed)
    nodes = sum(int((unit >= 0).sum()) for unit in corpus.unit)
    neural = round(bits / max(nodes, 1), 6)
    return network, msgspec.structs.replace(evidence, neural=neural)


# -------------------------------------------------------------------------------------------------
# Sequences


def _for_evidence(corpus: Corpus, parsed: Parsed) -> tuple[Parsed, int]:
    """The sequences of which units can be held out, and into how many blocks units are cut."""
    if corpus.units > 1:
        return parsed, 1
    return parse(corpus, parsed.before, _BLOCKS), _BLOCKS


def _evidence(corpus: Corpus, parsed: Parsed) -> tuple[Parsed, Evidence, dict[int, Order]]:
    """The orders that held-out steps or ranks choose, and bits for each node of them."""
    parted, blocks = _for_evidence(corpus, parsed)
    choice = choose_orders(parted.sequences)
    flat = flat_of(corpus, blocks)
    nodes = max(len(flat.tokens), 1)
    names = {EXACT_KIND: EXACT, TURN_KIND: TURNS, MASTER_KIND: MASTER, **dict(enumerate(PHASES))}
    evidence = Evidence(
        orders={names[kind]: (o.tokens, o.counts) for kind, o in choice.orders.items()},
        bits=tuple(round(bits / nodes, 6) for bits in choice.bits),
        chosen=round(choice.chosen / nodes, 6),
        nothing=round(by_frequency(flat) / nodes, 6),
    )
    return parsed, evidence, choice.orders


@dataclass(frozen=True)
class _Drawn:
    """What sequences are drawn from, as a `Part` has it."""

    masters: ChainGraph
    fills: ChainGraph
    exact: tuple[Exact, ...]
    classes: tuple[tuple[int, ...], ...]


def _drawn(corpus: Corpus, parsed: Parsed, orders: dict[int, Order]) -> _Drawn:
    sequences, gaps = parsed.sequences, len(parsed.gaps)
    keys = corpus.world.roles + len(parsed.spans)
    master = np.isin(sequences.kind, (TURN_KIND, MASTER_KIND))
    own = _moved(_chosen(sequences, ~master), keys)
    rank = _rank_of_units(corpus)
    role = np.array([rank.role for rank in corpus.ranks], np.int64)
    classes, number = classes_of(own, orders, rank[own.unit], role)
    fills, exact = _chosen(own, own.kind >= 0), _chosen(own, own.kind == EXACT_KIND)
    return _Drawn(
        chain_graph(_chosen(sequences, master), orders, keys),
        chain_graph(fills, orders, gaps, number[rank[fills.unit]]),
        _exact(_moved(exact, gaps), number[rank[exact.unit]], classes),
        classes,
    )


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


def _exact(
    sequences: Sequences, group: Rows, classes: tuple[tuple[int, ...], ...]
) -> tuple[Exact, ...]:
    """The tokens of marks that have several, and how many steps of each class had which."""
    found = []
    for mark in np.unique(sequences.key).tolist():
        mine = sequences.key == mark
        tokens, of = np.unique(sequences.tokens[mine], return_inverse=True)
        counts = np.zeros((1 + sum(map(len, classes)), len(tokens)), np.int64)
        np.add.at(counts, (group[mine], of.reshape(-1)), 1)
        told = tuple(map(tuple, counts.tolist()))
        found.append(Exact(mark, tuple(tokens.tolist()), told))
    return tuple(found)


def _rank_of_units(corpus: Corpus) -> Rows:
    """The rank, counted over all runs, of each unit."""
    units = [len(np.unique(unit[unit >= 0])) for unit in corpus.unit]
    return np.repeat(np.arange(len(units)), units)


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
                marks = tuple(
                    _marks(corpus, members[role], step, parsed.before, numbers)
                    for role in range(roles)
                )
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
    told = corpus.stands[code]
    rows = np.flatnonzero(corpus.marked[rank] & here).tolist()
    first = int(np.argmax(here))
    return tuple(
        numbers[int(code[r - 1]) if before and r > first else BEGIN, int(told[r])] for r in rows
    )
