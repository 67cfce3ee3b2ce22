"""Collective algorithms as the transfers that they consist of.

An algorithm cuts a buffer into chunks and moves these between ranks in steps. All transfers of a
step read what was there before it. From that follow the messages of each rank, and whether the
algorithm does what the collective promises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from chakra_et.definitions import CollectiveType
from chakra_et.errors import ChakraError


class Transfer(NamedTuple):
    """One chunk from rank to rank; `reduce` adds it to what is there, else it takes its place."""

    source: int
    target: int
    chunk: int
    reduce: bool = False


Step = list[Transfer]


@dataclass(frozen=True)
class Algorithm:
    """A collective of `ranks` ranks over a buffer of `chunks` chunks."""

    name: str
    collective: CollectiveType
    ranks: int
    chunks: int
    steps: tuple[Step, ...]

    def check(self) -> None:
        """Run it on sets of contributions. Raises ValueError where the outcome is not right."""
        state = [dict(self._before(rank)) for rank in range(self.ranks)]
        for number, step in enumerate(self.steps):
            read = [(t, state[t.source].get(t.chunk)) for t in step]
            for transfer, value in read:
                here = state[transfer.target]
                if value is None:
                    raise ValueError(f"step {number}: rank {transfer.source} lacks the chunk sent")
                if transfer.reduce and here.get(transfer.chunk, frozenset()) & value:
                    raise ValueError(f"step {number}: {transfer} adds something twice")
                old = here.get(transfer.chunk, frozenset()) if transfer.reduce else frozenset()
                here[transfer.chunk] = old | value
        for rank in range(self.ranks):
            for chunk, wanted in self._after(rank):
                if state[rank].get(chunk) != wanted:
                    raise ValueError(f"rank {rank} ends with {state[rank].get(chunk)} in {chunk}")

    def _owner(self, chunk: int) -> int:
        return chunk * self.ranks // self.chunks

    def _before(self, rank: int) -> Iterator[tuple[int, frozenset[int]]]:
        """Chunks that a rank has at first, and whose contributions they are."""
        one = frozenset({rank})
        for chunk in range(self.chunks):
            if self.collective is CollectiveType.ALL_GATHER and self._owner(chunk) != rank:
                continue
            if self.collective is CollectiveType.BROADCAST and rank:
                continue
            if self.collective is CollectiveType.ALL_TO_ALL and chunk // self.ranks != rank:
                continue
            yield chunk, one

    def _after(self, rank: int) -> Iterator[tuple[int, frozenset[int]]]:
        """Chunks that a rank must have in the end."""
        every = frozenset(range(self.ranks))
        for chunk in range(self.chunks):
            if self.collective is CollectiveType.ALL_REDUCE:
                yield chunk, every
            elif self.collective is CollectiveType.ALL_GATHER:
                yield chunk, frozenset({self._owner(chunk)})
            elif self.collective is CollectiveType.REDUCE_SCATTER and self._owner(chunk) == rank:
                yield chunk, every
            elif self.collective is CollectiveType.BROADCAST:
                yield chunk, frozenset({0})
            elif self.collective is CollectiveType.REDUCE and rank == 0:
                yield chunk, every
            elif self.collective is CollectiveType.ALL_TO_ALL and chunk % self.ranks == rank:
                yield chunk, frozenset({chunk // self.ranks})


# ---------------------------------------------------------------------------------------------
# Rings, along some ranks: `members` in order, each with a chunk or several of its own


def ring_reduce_scatter(members: list[int], chunks: list[list[int]]) -> Iterator[Step]:
    """Every chunk goes once round, and is complete at its owner."""
    count = len(members)
    for step in range(count - 1):
        yield [
            Transfer(member, members[(place + 1) % count], chunk, reduce=True)
            for place, member in enumerate(members)
            for chunk in chunks[(place - step - 1) % count]
        ]


def ring_all_gather(members: list[int], chunks: list[list[int]]) -> Iterator[Step]:
    """Every owner's chunks go once round."""
    count = len(members)
    for step in range(count - 1):
        yield [
            Transfer(member, members[(place + 1) % count], chunk)
            for place, member in enumerate(members)
            for chunk in chunks[(place - step) % count]
        ]


def _ring(collective: CollectiveType, ranks: int, per_node: int) -> Algorithm:
    members, chunks = list(range(ranks)), [[chunk] for chunk in range(ranks)]
    steps: list[Step] = []
    if collective is not CollectiveType.ALL_GATHER:
        steps += ring_reduce_scatter(members, chunks)
    if collective is not CollectiveType.REDUCE_SCATTER:
        steps += ring_all_gather(members, chunks)
    return Algorithm("ring", collective, ranks, ranks, tuple(steps))


def _recursive(collective: CollectiveType, ranks: int, per_node: int) -> Algorithm:
    """Recursive doubling: partners at distance 1, 2, 4 and so on exchange all that they have.

    A reduce-scatter goes the other way, recursive halving, and sends but half each time.
    """
    rounds = _log2(ranks, "recursive doubling")
    steps: list[Step] = []
    for number in range(rounds):
        if collective is CollectiveType.ALL_REDUCE:
            steps.append([Transfer(r, r ^ 1 << number, 0, reduce=True) for r in range(ranks)])
        elif collective is CollectiveType.ALL_GATHER:
            steps.append(
                [Transfer(r, r ^ 1 << number, chunk) for r in range(ranks)
                 for chunk in range(ranks) if chunk >> number == r >> number]
            )  # fmt: skip
        else:
            bit = rounds - 1 - number
            steps.append(_halving(ranks, bit))
    chunks = 1 if collective is CollectiveType.ALL_REDUCE else ranks
    return Algorithm("recursive-doubling", collective, ranks, chunks, tuple(steps))


def _halving(ranks: int, bit: int) -> Step:
    """To the partner go the chunks of its half, of those that the rank still adds up."""
    return [
        Transfer(r, r ^ 1 << bit, chunk, reduce=True)
        for r in range(ranks)
        for chunk in range(ranks)
        if chunk >> bit == (r ^ 1 << bit) >> bit
    ]


def _halving_doubling(collective: CollectiveType, ranks: int, per_node: int) -> Algorithm:
    """An all-reduce of recursive halving, then recursive doubling (Rabenseifner, 2004)."""
    first = _recursive(CollectiveType.REDUCE_SCATTER, ranks, per_node)
    second = _recursive(CollectiveType.ALL_GATHER, ranks, per_node)
    steps = (*first.steps, *second.steps)
    return Algorithm("halving-doubling", collective, ranks, ranks, steps)


def _tree(collective: CollectiveType, ranks: int, per_node: int) -> Algorithm:
    """Up a binomial tree to rank 0, and down again."""
    levels = range((ranks - 1).bit_length())
    up = [
        [Transfer(r, r - (1 << level), 0, reduce=True)
         for r in range(ranks) if r % (2 << level) == 1 << level]
        for level in levels
    ]  # fmt: skip
    down = [[Transfer(t.target, t.source, 0) for t in step] for step in reversed(up)]
    steps = [] if collective is CollectiveType.BROADCAST else up
    if collective is not CollectiveType.REDUCE:
        steps = steps + down
    return Algorithm("tree", collective, ranks, 1, tuple(steps))


def _direct(collective: CollectiveType, ranks: int, per_node: int) -> Algorithm:
    """Everybody sends to everybody, in as many steps as there are others."""
    exchange = collective is CollectiveType.ALL_TO_ALL
    reduce = collective is CollectiveType.REDUCE_SCATTER

    def chunk(source: int, target: int) -> int:
        return source * ranks + target if exchange else target if reduce else source

    steps = [
        [Transfer(r, (r + step) % ranks, chunk(r, (r + step) % ranks), reduce)
         for r in range(ranks)]
        for step in range(1, ranks)
    ]  # fmt: skip
    chunks = ranks * ranks if exchange else ranks
    return Algorithm("direct", collective, ranks, chunks, tuple(steps))


def _hierarchical(collective: CollectiveType, ranks: int, per_node: int) -> Algorithm:
    """Reduce-scatter within nodes, all-reduce of each part between nodes, all-gather within."""
    if per_node < 1 or ranks % per_node:
        raise ChakraError(
            f"{ranks} ranks do not fill nodes of {per_node}", remedy="Choose --per-node."
        )
    nodes = ranks // per_node
    inside = [list(range(node * per_node, (node + 1) * per_node)) for node in range(nodes)]
    across = [[node * per_node + place for node in range(nodes)] for place in range(per_node)]
    # Part p has a chunk for each node: the ring between nodes cuts it once more.
    parts = [[part * nodes + node for node in range(nodes)] for part in range(per_node)]
    singles = [[[chunk] for chunk in part] for part in parts]
    steps = [
        *_together([ring_reduce_scatter(members, parts) for members in inside]),
        *_together([ring_reduce_scatter(m, c) for m, c in zip(across, singles, strict=True)]),
        *_together([ring_all_gather(m, c) for m, c in zip(across, singles, strict=True)]),
        *_together([ring_all_gather(members, parts) for members in inside]),
    ]
    return Algorithm("hierarchical", collective, ranks, ranks, tuple(steps))


def _together(each: list[Iterator[Step]]) -> Iterator[Step]:
    """Steps that run at the same time among different ranks."""
    for steps in zip(*each, strict=True):
        yield [transfer for step in steps for transfer in step]


def _log2(ranks: int, name: str) -> int:
    if ranks & (ranks - 1):
        raise ChakraError(
            f"{name} needs a power of two, not {ranks} ranks", remedy="Choose another algorithm."
        )
    return ranks.bit_length() - 1


Maker = Callable[[CollectiveType, int, int], Algorithm]
_AR, _AG, _RS, _AA = (
    CollectiveType.ALL_REDUCE, CollectiveType.ALL_GATHER, CollectiveType.REDUCE_SCATTER,
    CollectiveType.ALL_TO_ALL,
)  # fmt: skip
ALGORITHMS: Final[dict[str, tuple[Maker, tuple[CollectiveType, ...]]]] = {
    "ring": (_ring, (_AR, _AG, _RS)),
    "recursive-doubling": (_recursive, (_AR, _AG, _RS)),
    "halving-doubling": (_halving_doubling, (_AR,)),
    "tree": (_tree, (_AR, CollectiveType.BROADCAST, CollectiveType.REDUCE)),
    "direct": (_direct, (_AG, _RS, _AA)),
    "hierarchical": (_hierarchical, (_AR,)),
}
"""Algorithms by name, and the collectives that each of them can do."""


def algorithm(name: str, collective: CollectiveType, ranks: int, per_node: int = 1) -> Algorithm:
    """An algorithm for a collective of some ranks; `per_node` of them share a node.

    Raises ChakraError where there is none, or not for so many ranks.
    """
    if name not in ALGORITHMS:
        raise ChakraError(f"no algorithm {name!r}", remedy=f"It is one of {', '.join(ALGORITHMS)}.")
    make, can = ALGORITHMS[name]
    if collective not in can:
        raise ChakraError(
            f"{name} does no {collective.name.lower()}",
            remedy=f"It does {', '.join(c.name.lower() for c in can)}.",
        )
    if ranks < 2:
        raise ChakraError(f"a collective of {ranks} ranks", remedy="Give 2 or more.")
    return make(collective, ranks, per_node)
