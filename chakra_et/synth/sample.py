"""Samples: sets of any number of ranks and steps, drawn from a model, rank by rank."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from chakra_et.build import Workload
from chakra_et.build.checks import Checks
from chakra_et.build.grid import Ranks
from chakra_et.build.output import Written, write_programs
from chakra_et.columns import Rows
from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet
from chakra_et.synth.filling import Filler, Fills, MarkTokens, NeuralFiller, NeuralMasters
from chakra_et.synth.masters import Master, Steps, masters
from chakra_et.synth.model import Part, SynthModel
from chakra_et.synth.quotas import Quota, places_in_classes
from chakra_et.synth.rows import Drawer
from chakra_et.synth.rows import Rows as SampledRows
from chakra_et.synth.scaling import Conditions, Scaling, choose_part, parse_scales, scaling_of

_MOST_NODES: Final = 1 << 30
"""More nodes, of all ranks, are taken for a mistake."""


class Sampler:
    """Draws a set from a model: the same one for the same arguments."""

    def __init__(
        self,
        model: SynthModel,
        ranks: int,
        steps: int = 1,
        *,
        seed: int = 0,
        conditions: Conditions | None = None,
        scale_sizes: dict[str, float] | None = None,
    ) -> None:
        if steps < 1 or seed < 0:
            raise ChakraError("steps count from 1, seeds from 0", remedy="Give such numbers.")
        wanted = conditions or Conditions()
        self.part: Part = choose_part(model, ranks, wanted)
        self.scaling: Scaling = scaling_of(self.part, wanted, scale_sizes or parse_scales(()))
        self._seed, self._steps = seed, steps
        _expect_room(self.part, ranks, steps)
        facts = {"workload": _json(model, self.part, ranks, steps, seed)}
        self.workload: Workload = self.part.world.workload(ranks, facts)
        self.workload.seal()
        neural = model.learner == "neural"
        self._fills: Fills = NeuralFiller(self.part) if neural else Filler(self.part)
        self._exact = MarkTokens(self.part)
        self._draw = Steps(self.part, NeuralMasters(self.part) if neural else None)

    def programs(self) -> Iterator[tuple[SampledRows, Ranks]]:
        """The columns of each rank, and the rank."""
        random = np.random.default_rng([self._seed, 0])
        shared = masters(self.part, self.workload, self._steps, self.scaling, self._draw, random)
        drawer = Drawer(self.part, self.workload, self.scaling)
        checks = Checks(self.workload)
        for rank, quota in enumerate(self._quotas()):
            master = shared[self.part.world.role(self.workload.grid, rank)]
            tokens = self._row_tokens(master, quota)
            rows = drawer.rows(rank, master, *tokens, quota.random)
            ranks = np.array([rank], np.int64)
            checks.add(rows, ranks)
            yield rows, ranks
        checks.finish()

    def _quotas(self) -> Iterator[Quota]:
        """The class of each rank, and its part in the choices of that class."""
        world, grid = self.part.world, self.workload.grid
        role = np.array([world.role(grid, rank) for rank in range(grid.world_size)], np.int64)
        columns = np.zeros((3, len(role)), np.int64)
        first = 1
        for number, sizes in enumerate(self.part.classes):
            mine = np.flatnonzero(role == number)
            random = np.random.default_rng([self._seed, 2, number])
            columns[:, mine] = places_in_classes(sizes or (1,), len(mine), random)
            columns[0, mine] = columns[0, mine] + first if sizes else 0
            first += len(sizes)
        for rank, (number, place, ranks) in enumerate(columns.T.tolist()):
            own = np.random.default_rng([self._seed, 1, rank])
            yield Quota(number, place, ranks, self._seed, own)

    def _row_tokens(self, master: Master, quota: Quota) -> tuple[Rows, Rows]:
        """The tokens of all rows of a rank, and for each its mark, -1 for those between marks."""
        exact = self._exact.draw(master.marks, quota)
        between = self._fills.draw(master.marks, exact, master.steps, quota)
        lengths = np.array([len(b) for b in between], np.int64)
        places = np.cumsum(lengths + 1) - lengths - 1
        tokens = np.empty(int(lengths.sum()) + len(lengths), np.int64)
        mark = np.full(len(tokens), -1, np.int64)
        mark[places] = np.arange(len(places))
        tokens[places] = exact
        tokens[mark < 0] = np.concatenate(between)
        return tokens, mark

    def traces(self) -> TraceSet:
        """The set in memory."""
        return TraceSet({int(r[0]): rows.trace(int(r[0])) for rows, r in self.programs()})

    def write(
        self, directory: str | Path, *, compressed: bool = False, force: bool = False
    ) -> Written:
        """Write the set to a directory, each rank as soon as it is drawn."""
        return write_programs(
            self.workload, self.programs(), directory, compressed=compressed, force=force
        )


def _expect_room(part: Part, ranks: int, steps: int) -> None:
    """Refuse what would take days, or what a damaged model asks for."""
    longest = max((n for lengths in part.fills.lengths for n in lengths), default=0)
    marks = max((n for lengths in part.masters.lengths for n in lengths), default=0)
    marks = max([marks, *(len(m) for step in part.joint for m in step)])
    nodes = max(part.nodes, marks, longest)
    if nodes * steps * max(ranks, 1) > _MOST_NODES:
        raise ChakraError(
            f"{ranks:,} ranks and {steps:,} steps of up to {nodes:,} nodes are more than "
            f"{_MOST_NODES:,} nodes",
            remedy="Ask for fewer ranks or steps.",
        )


def _json(model: SynthModel, part: Part, ranks: int, steps: int, seed: int) -> str:
    told = {"kind": "synth", "learner": model.learner, "ranks": ranks, "steps": steps, "seed": seed}
    return msgspec.json.encode(told).decode()
