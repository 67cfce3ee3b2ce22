"""What all ranks of a role share: the marks of all steps, with sizes and times of communication."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from chakra_et.build import Workload
from chakra_et.build.operation import Operation, Peer
from chakra_et.columns import Rows, no_rows, turns_of
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.synth.corpus import BEGIN
from chakra_et.synth.graph import Walker
from chakra_et.synth.model import Part
from chakra_et.synth.scaling import Scaling
from chakra_et.synth.times import Durations
from chakra_et.synth.tokens import FREE, Token
from chakra_et.synth.view import ABSENT, COMMUNICATION


@dataclass
class Master:
    """The marks of all steps of a role, one after the other.

    `marks`, `tokens`, `steps`, `sizes` (int64[marks, 3], of SIZES) and `duration_ns` have one entry
    for each mark. `operation` is its place in `operations`, -1 for one that does not communicate,
    or whose group or peer the workload does not have. `last` tells which member of its group comes
    last to a collective.
    """

    role: int
    marks: Rows
    tokens: Rows
    steps: Rows
    sizes: Rows
    duration_ns: Rows
    operation: Rows
    operations: list[Operation]
    last: Rows


class Walks(Protocol):
    """A learner that draws turns and marks."""

    def knows(self, key: int) -> bool:
        """Whether sequences of this key were learned."""

    def walk(self, key: int, random: np.random.Generator) -> Rows:
        """A sequence of a key."""


class _Chains:
    """Draws turns and marks from chains."""

    def __init__(self, part: Part) -> None:
        self._walker = Walker(part.masters)
        self.knows = self._walker.knows

    def walk(self, key: int, random: np.random.Generator) -> Rows:
        """A sequence of a key."""
        return self._walker.walk(key, lambda *_: random.random())


class Steps:
    """Draws the marks of steps, for all roles at once."""

    def __init__(self, part: Part, walker: Walks | None = None) -> None:
        self._joint = part.joint
        self._keys = {pair: part.world.roles + key for key, pair in enumerate(part.spans)}
        self._walker: Walks = walker or _Chains(part)

    def draw(self, random: np.random.Generator) -> list[Rows]:
        """The marks of one step of each role.

        Messages and several programs must fit together, so that steps are drawn as a whole there.
        """
        if self._joint:
            step = self._joint[int(random.integers(len(self._joint)))]
            return [np.array(marks, np.int64) for marks in step]
        found: list[Rows] = []
        turns = self._walker.walk(0, random).tolist()
        for here, there in pairwise([*turns, BEGIN]):
            key = self._keys.get((here, there), -1)
            found.append(np.array([here], np.int64))
            if self._walker.knows(key):
                found.append(self._walker.walk(key, random))
        return [np.concatenate(found) if found else no_rows()]


def masters(
    part: Part,
    workload: Workload,
    steps: int,
    scaling: Scaling,
    draw: Steps,
    random: np.random.Generator,
) -> list[Master]:
    """The masters of all roles."""
    drawn = [draw.draw(random) for _ in range(steps)]
    durations = Durations(part)
    token_of = np.array([token for _, token in part.marks], np.int64)
    found = []
    for role in range(part.world.roles):
        marks = np.concatenate([step[role] for step in drawn])
        tokens = token_of[marks]
        number = np.repeat(np.arange(steps), [len(step[role]) for step in drawn])
        took = durations.draw(role, tokens, turns_of(tokens, number), random)
        duration = np.rint(took * scaling.time[tokens]).astype(np.int64)
        sizes = drawn_sizes(part, tokens, scaling, random)
        operation, operations = _operations(part, workload, tokens, sizes)
        last = random.integers(0, 1 << 30, len(tokens))
        found.append(
            Master(role, marks, tokens, number, sizes, duration, operation, operations, last)
        )
    return found


def drawn_sizes(part: Part, tokens: Rows, scaling: Scaling, random: np.random.Generator) -> Rows:
    """The sizes of rows: those that their tokens have, others from mixtures; scaled."""
    fixed = np.array([t.sizes for t in part.tokens], np.int64).reshape(-1, 3)
    sizes = fixed[tokens]
    for token, found in part.free.items():
        rows = np.flatnonzero(tokens == token)
        for place, mixture in enumerate(found):
            if mixture is not None and len(rows):
                sizes[rows, place] = mixture.draw(len(rows), random)
    sizes[sizes == FREE] = ABSENT
    factor = scaling.size[tokens][:, None]
    scaled = np.minimum(np.rint(sizes * factor), 1 << 61).astype(np.int64)
    return np.where((sizes > 0) & (factor != 1), np.maximum(scaled, 1), sizes)


def _operations(
    part: Part, workload: Workload, tokens: Rows, sizes: Rows
) -> tuple[Rows, list[Operation]]:
    """An operation for each mark that communicates; equal ones are one object."""
    place = np.full(len(tokens), -1, np.int64)
    operations: dict[Operation, int] = {}
    tags = Counter[tuple[NodeType, Peer]]()
    for mark, (code, size) in enumerate(zip(tokens.tolist(), sizes[:, 2].tolist(), strict=True)):
        token = part.tokens[code]
        if token.type not in COMMUNICATION:
            continue
        told = None if size == ABSENT else size
        if token.type == NodeType.COMM_COLL:
            made = _collective(part, workload, token, told)
        else:
            made = _message(workload, token, told, tags)
        if made is not None:
            place[mark] = operations.setdefault(made, len(operations))
    return place, list(operations)


def _collective(part: Part, workload: Workload, token: Token, size: int | None) -> Operation | None:
    kin = part.world.kin[token.kin].name
    if kin not in workload.families or workload.families[kin].size == 1:
        return None
    kind = None if token.collective == ABSENT else token.collective
    name = "collective" if kind is None else CollectiveType(kind).name.lower()
    return Operation(NodeType.COMM_COLL, name, collective=kind, size_bytes=size, family=kin)


def _message(
    workload: Workload, token: Token, size: int | None, tags: Counter[tuple[NodeType, Peer]]
) -> Operation | None:
    axes = workload.grid.axes
    steps = ((axis, step % axes.get(axis, 1)) for axis, step in token.peer or ())
    peer = Peer(offsets=tuple(sorted((axis, step) for axis, step in steps if step)))
    if not peer.offsets:
        return None
    kind = NodeType(token.type)
    tags[kind, peer] += 1
    name = "send" if kind is NodeType.COMM_SEND else "receive"
    return Operation(kind, name, size_bytes=size or 0, tag=tags[kind, peer] - 1, peer=peer)
