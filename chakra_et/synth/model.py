"""The model file: what was learned of workloads, as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from chakra_et.anonymise.pseudonyms import FAMILIES
from chakra_et.definitions import CollectiveType, EdgeKind, NodeType
from chakra_et.errors import FormatError
from chakra_et.io.output import atomic_output
from chakra_et.io.source import blocks
from chakra_et.synth.graph import ChainGraph, counted
from chakra_et.synth.mixtures import Mixture
from chakra_et.synth.network import Alphabet, Network
from chakra_et.synth.phases import PHASES
from chakra_et.synth.sketches import Sketch
from chakra_et.synth.tokens import FREE, Token
from chakra_et.synth.view import ABSENT, COMMUNICATION, DEEPEST, SIZES
from chakra_et.synth.worlds import World

FORMAT: Final = "chakra-et synth model 3"
_MOST_BYTES: Final = 1 << 28
_REMEDY: Final = "Fit it anew with `chakra synth fit`."
_LARGEST: Final = 1 << 62
_MOST_DISTANCE: Final = 1 << 30
MOST_TURNS: Final = 1 << 10
"""Later occurrences of a token in a step are not told apart."""


class Distances(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far back the source of an edge lies among the rows of its place, and how often."""

    values: tuple[int, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.values) == len(self.counts) or min(self.counts) < 1:
            raise ValueError("distances lack values or counts")
        if not all(0 < v <= _MOST_DISTANCE for v in self.values):
            raise ValueError("a distance is below 1")


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What rows of a token may wait for: kind and place of each edge, its distances, how often.

    `turn` says of which occurrence of the token in a step of a `role` this holds, from 0 on; both
    are ABSENT for any.
    """

    token: int
    turn: int
    role: int
    count: int
    slots: tuple[tuple[int, int], ...]
    distances: tuple[Distances, ...]

    def __post_init__(self) -> None:
        if len(self.slots) != len(self.distances) or self.count < 1:
            raise ValueError("slots and distances differ in number")
        if not ABSENT <= self.turn < MOST_TURNS:
            raise ValueError("an occurrence is out of range")


class Occurrences(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which durations occurrences of a token in a step of a role have: a place in `apart` for each.

    ABSENT stands for those of the token.
    """

    token: int
    role: int
    sketches: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.sketches) <= MOST_TURNS:
            raise ValueError("durations are told of no occurrence, or of too many")


class Exact(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tokens that one mark has on different ranks, by class of ranks how often each."""

    mark: int
    tokens: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        sound = self.tokens and {len(self.tokens)} == set(map(len, self.counts))
        if not sound or not counted(self.counts):
            raise ValueError("a mark lacks tokens or counts")


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How well held-out steps or ranks were foreseen, in bits per event.

    `orders` has of each phase, of turns, of the master sequence, and of exact tokens of marks, how
    many tokens a context has, and whether it counts how often it was met. `bits` is by order;
    `chosen` is with these orders, `nothing` by frequencies alone, `neural` by that learner.
    """

    orders: dict[str, tuple[int, bool]]
    bits: tuple[float, ...]
    chosen: float
    nothing: float
    neural: float | None = None


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was learned of runs whose ranks lie alike.

    `sources` are lane and family of rows that edges to other lanes come from; their places follow
    those of lanes. `tokens` are kinds of rows, with `durations`, `delays` and (of communication)
    `waits` for other ranks, in ns, by token; of `occurrences` that take another time than others
    `apart` has the durations; `skew` is how long after the first one ranks begin. All times are
    multiples of `grain_ns`. `variants` are what tokens wait for, in their order; `free` has
    mixtures by token and place in SIZES. `marks` are pairs of tokens, of the row before and of the
    mark itself. `masters` draws marks: by role those with which phases begin, then by `spans`,
    pairs of them, the communication between. `exact` has the tokens of marks that have several,
    `fills` draws those between two marks, with the token of the first one `gaps`, both by class of
    ranks; `classes` has by role how many ranks each class had, which count from 1 over all
    roles, and none where ranks have no classes.
    Where marks of ranks fit together only as they were seen, `joint` has those of whole steps, by
    role. `nodes`, `communication_ns` and `compute_ns` are sums of a mean step of a rank; `batch` is
    the batch that the runs told.
    """

    world: World
    runs: int
    ranks: int
    steps: int
    batch: float | None
    nodes: int
    communication_ns: int
    compute_ns: int
    lanes: tuple[tuple[int, int], ...]
    families: tuple[str, ...]
    sources: tuple[tuple[int, int], ...]
    tokens: tuple[Token, ...]
    durations: tuple[Sketch, ...]
    occurrences: tuple[Occurrences, ...]
    apart: tuple[Sketch, ...]
    grain_ns: int
    delays: dict[int, Sketch]
    waits: dict[int, Sketch]
    skew: Sketch
    variants: tuple[Variant, ...]
    free: dict[int, tuple[Mixture | None, Mixture | None, Mixture | None]]
    marks: tuple[tuple[int, int], ...]
    spans: tuple[tuple[int, int], ...]
    gaps: tuple[tuple[int, int, int], ...]
    masters: ChainGraph
    fills: ChainGraph
    exact: tuple[Exact, ...]
    classes: tuple[tuple[int, ...], ...]
    joint: tuple[tuple[tuple[int, ...], ...], ...]
    evidence: Evidence
    network: Network | None = None

    def __post_init__(self) -> None:
        for token in self.tokens:
            _check_token(token, self)
        _check_times(self)
        _check_variants(self)
        _check_sequences(self)
        _check_marks(self)
        _check_classes(self)
        if min(self.communication_ns, self.compute_ns, self.nodes, self.steps) < 0:
            raise ValueError("a sum is below 0")
        if self.network is not None:
            self.network.arrays(self.alphabet.inputs)

    @property
    def alphabet(self) -> Alphabet:
        """The symbols of a network."""
        return Alphabet(len(self.tokens), len(self.marks), self.world.roles)

    @property
    def of_single_steps(self) -> bool:
        """Whether no rank had a second step, so that nothing tells how steps follow each other."""
        return self.steps == self.ranks

    @property
    def share(self) -> float:
        """The share of communication in the times of all nodes of a mean step."""
        return self.communication_ns / max(self.communication_ns + self.compute_ns, 1)


def _check_token(token: Token, part: Part) -> None:
    families, lanes, axes = len(part.families), len(part.lanes), part.world.axes
    talks = token.type in COMMUNICATION
    sound = (
        0 <= token.phase < len(PHASES)
        and token.type in set(NodeType) - {NodeType.INVALID, NodeType.METADATA}
        and 0 <= token.family < families
        and 0 <= token.lane < lanes
        and 0 <= token.depth <= DEEPEST
        and (token.collective in {ABSENT, *CollectiveType})
        and ABSENT <= token.kin < len(part.world.kin)
        and (token.type != NodeType.COMM_COLL) == (token.kin == ABSENT)
        and (talks and token.type != NodeType.COMM_COLL) == (token.peer is not None)
        and all(axis in axes and steps for axis, steps in token.peer or ())
        and len(token.sizes) == len(SIZES)
        and all(FREE <= size <= _LARGEST for size in token.sizes)
    )
    if not sound:
        raise ValueError(f"a token is none of this format: {token}")


def _check_times(part: Part) -> None:
    count = len(part.tokens)
    if len(part.durations) != count:
        raise ValueError("tokens and durations differ in number")
    if part.grain_ns < 1:
        raise ValueError("durations are multiples of nothing")
    for told in part.occurrences:
        if not (0 <= told.token < count and 0 <= told.role < part.world.roles):
            raise ValueError("durations are told of a token or role that there is not")
        if not all(ABSENT <= place < len(part.apart) for place in told.sketches):
            raise ValueError("an occurrence has durations that there are not")


def _check_variants(part: Part) -> None:
    """What tokens wait for: each has variants, and their edges begin at places that there are."""
    of = [(v.token, v.role, v.turn) for v in part.variants]
    count, roles = len(part.tokens), part.world.roles
    every = {token for token, _, turn in of if turn == ABSENT}
    known = all(0 <= token < count and ABSENT <= role < roles for token, role, _ in of)
    if of != sorted(of) or every != set(range(count)) or not known:
        raise ValueError("a token lacks variants")
    if any((role == ABSENT) != (turn == ABSENT) for _, role, turn in of):
        raise ValueError("an occurrence has no role")
    lanes, families = len(part.lanes), len(part.families)
    if not all(0 <= a < lanes and 0 <= b < families for a, b in part.sources):
        raise ValueError("a source has no lane, or no family")
    kinds, places = set(EdgeKind), lanes + len(part.sources)
    if any(k not in kinds or not 0 <= p < places for v in part.variants for k, p in v.slots):
        raise ValueError("an edge is of no kind, or from no place")
    if set(part.families) - set(FAMILIES):
        raise ValueError("a family is unknown")


def _check_sequences(part: Part) -> None:
    """Sequences are of tokens and marks that there are."""
    begins = (gap[2] for gap in part.gaps if gap[2] != ABSENT)
    tokens = (*part.fills.tokens, *part.delays, *part.waits, *part.free, *begins,
              *(token for mark in part.marks for token in mark if token != ABSENT),
              *(token for mark in part.exact for token in mark.tokens))  # fmt: skip
    if tokens and not 0 <= min(tokens) <= max(tokens) < len(part.tokens):
        raise ValueError("a sequence has a token that there is not")
    pairs = {mark for pair in (*part.spans, *part.gaps) for mark in pair[:2]} - {ABSENT}
    pairs |= {mark.mark for mark in part.exact}
    steps = (mark for step in part.joint for role in step for mark in role)
    marks = {*part.masters.tokens, *steps, *pairs}
    if marks and not 0 <= min(marks) <= max(marks) < len(part.marks):
        raise ValueError("a sequence has a mark that there is not")
    if any(len(step) != part.world.roles for step in part.joint):
        raise ValueError("a step lacks a role")
    keys = part.world.roles + len(part.spans), len(part.gaps)
    if keys != (len(part.masters.start), len(part.fills.start)):
        raise ValueError("pairs of marks and chains between them differ in number")


def _check_marks(part: Part) -> None:
    if any(token == ABSENT for _, token in part.marks):
        raise ValueError("a mark has no token")
    if any(part.tokens[t].type in COMMUNICATION for t in part.fills.tokens):
        raise ValueError("communication stands outside the master sequence")
    for mark in part.exact:
        own = {part.tokens[t].kind for t in (*mark.tokens, part.marks[mark.mark][1])}
        if len(own) > 1 or len(mark.counts) != len(part.fills.counts):
            raise ValueError("a mark has tokens that are not alike, or of other classes")


def _check_classes(part: Part) -> None:
    if any(size < 1 for sizes in part.classes for size in sizes):
        raise ValueError("a class has no rank")
    roles, classes = len(part.classes), 1 + sum(map(len, part.classes))
    told = part.world.roles, len(part.fills.counts), len(part.masters.counts)
    if (roles, classes, 1) != told:
        raise ValueError("classes of ranks and of chains differ in number")


class SynthModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parts of runs that lie differently, and which learner draws sequences."""

    format: str
    learner: str
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"the format is {self.format!r}, not {FORMAT!r}")
        if self.learner not in ("markov", "neural") or not self.parts:
            raise ValueError("a learner is unknown, or there is nothing learned")
        if self.learner == "neural" and any(part.network is None for part in self.parts):
            raise ValueError("a network is missing")


def save_model(model: SynthModel, path: str | Path) -> None:
    """Write a model, packed if the name ends in `.gz` or `.zst`; equal models give equal bytes."""
    with atomic_output(path) as stream:
        stream.write(msgspec.json.encode(model))


def load_model(path: str | Path) -> SynthModel:
    """Read a model. Raises FormatError for what is none."""
    parts, total = [], 0
    for block in blocks(path):
        parts.append(block)
        total += len(block)
        if total > _MOST_BYTES:
            raise FormatError(
                f"more than {_MOST_BYTES >> 20} MiB, too much for a model",
                path=path,
                remedy=_REMEDY,
            )
    try:
        return msgspec.json.decode(b"".join(parts), type=SynthModel)
    except (ValueError, RecursionError) as error:
        raise FormatError(
            f"no model of `chakra synth fit`: {error}", path=path, remedy=_REMEDY
        ) from error
