"""The ranks of a run as stages of a pipeline, and what the nodes of each stage tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.build.grid import Grid
from chakra_et.columns import Mask
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.errors import ChakraError
from chakra_et.io.json_text import from_json
from chakra_et.model import Trace, TraceSet
from chakra_et.scale.families import find_kin
from chakra_et.scale.layout import find_layout
from chakra_et.scale.sources import sources_of
from chakra_et.validators.view import ABSENT, TraceView
from chakra_et.whatif.edit import MissedError

AXES: Final = ("tp", "cp", "dp", "pp")
_TYPE: Final = 2
_SHAPES: Final = 1

Shape = tuple[int, ...]


def grid_of(traces: TraceSet) -> tuple[Grid, dict[str, str]]:
    """How the ranks of a run lie, and for each axis how that is known.

    Raises MissedError where groups and messages do not tell.
    """
    if list(traces) != list(range(len(traces))):
        raise MissedError(f"all ranks from 0 on: there are {list(traces)[:8]}")
    groups = [group for trace in traces.values() for group in trace.groups]
    most = max((rank for group in groups for rank in group.ranks), default=0)
    if most >= len(traces):
        raise MissedError(f"all ranks: groups have rank {most}, and there are {len(traces)} ranks")
    try:
        sources = sources_of(traces)
        layout = find_layout(sources, find_kin(sources), None, metadata=False)
    except ChakraError as error:
        raise MissedError(f"how the ranks lie: {error.problem}", error.remedy or "") from error
    for axis, size in layout.grid.axes.items():
        if size > 1 and axis not in AXES:
            raise MissedError(f"what axis {axis} of {size} ranks is for: {layout.evidence[axis]}")
    return layout.grid, layout.evidence


@dataclass(frozen=True)
class Call:
    """One operator of a stage: what kind it is, where it belongs, and its shapes."""

    kind: str
    phase: str
    layer: int | None
    micro_batch: int
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    flops: int | None
    moved_bytes: int | None
    dtype: str


class Stage:
    """What one rank of a stage does; `of` finds operators by kind and phase."""

    def __init__(self, trace: Trace, rank: int) -> None:
        self.trace = trace
        self.rank = rank
        self.view = TraceView(trace, rank)

    @cached_property
    def kinds(self) -> npt.NDArray[np.object_]:
        """What kind of operator each node is, empty for what is none."""
        return self.view.texts("op_type")

    @cached_property
    def phases(self) -> npt.NDArray[np.object_]:
        """The phase of each node."""
        return self.view.texts("phase")

    @cached_property
    def layers(self) -> npt.NDArray[np.int64]:
        """The layer of each node, `ABSENT` for none."""
        return self.view.integers("layer")

    @cached_property
    def micro_batches(self) -> npt.NDArray[np.int64]:
        """The micro-batch of each node, `ABSENT` for none."""
        return self.view.integers("micro_batch")

    @cached_property
    def computes(self) -> Mask:
        """The nodes that compute."""
        return np.asarray(self.trace.nodes.type == NodeType.COMP)

    def of(self, kind: str, phase: str | None = None) -> Iterator[Call]:
        """The operators of a kind in a phase, or in all of them, in the order of the file."""
        chosen = self.computes & (self.kinds == kind)
        if phase is not None:
            chosen &= self.phases == phase
        return (self.call(row) for row in np.flatnonzero(chosen).tolist())

    def first(self, kind: str, phase: str) -> Call | None:
        """The first of them; None if there is none."""
        return next(self.of(kind, phase), None)

    def call(self, row: int) -> Call:
        """The operator of a row."""
        nodes = self.trace.nodes
        inputs, types = _shapes(nodes.texts, int(nodes.input_code[row]))
        outputs, made = _shapes(nodes.texts, int(nodes.output_code[row]))
        layer, flops, moved = (
            int(column[row])
            for column in (self.layers, self.view.integers("num_ops"),
                           self.view.integers("tensor_size"))
        )  # fmt: skip
        return Call(
            str(self.kinds[row]), str(self.phases[row]), None if layer == ABSENT else layer,
            int(self.micro_batches[row]), inputs, outputs,
            None if flops == ABSENT else flops, None if moved == ABSENT else moved,
            (types or made or [""])[0],
        )  # fmt: skip

    def collectives(self, *phases: str) -> list[tuple[CollectiveType, int]]:
        """Type and bytes of each collective of some phases, in the order of the file."""
        chosen = (self.trace.nodes.type == NodeType.COMM_COLL) & np.isin(
            self.phases.astype(str), phases
        )
        types, sizes = self.view.integers("comm_type"), self.view.integers("comm_size")
        return [
            (CollectiveType(int(types[row])), int(sizes[row]))
            for row in np.flatnonzero(chosen).tolist()
        ]

    def passes(self) -> list[tuple[str, int]]:
        """Phase and micro-batch of each pass, in the order in which they are run."""
        phases = np.where(self.phases == "recompute", "backward", self.phases)
        inside = self.computes & np.isin(phases.astype(str), ("forward", "backward"))
        rows = np.flatnonzero(inside)
        every = list(zip(phases[rows].tolist(), self.micro_batches[rows].tolist(), strict=True))
        return [one for place, one in enumerate(every) if not place or one != every[place - 1]]


def sums_early(stage: Stage) -> bool:
    """Whether gradients are summed before the last backward pass is over."""
    sums = np.flatnonzero(stage.phases == "gradients")
    passes = np.flatnonzero(stage.phases == "backward")
    return bool(len(sums) and len(passes) and sums[0] < passes[-1])


def _shapes(texts: Any, code: int) -> tuple[tuple[Shape, ...], list[str]]:
    """Shapes and types in a text; none where there is no text, or none that can be read."""
    if code < 0:
        return (), []
    try:
        shapes = from_json(texts[code][_SHAPES], type=list[tuple[int, ...]])
        types = from_json(texts[code][_TYPE], type=list[str])
    except (msgspec.DecodeError, IndexError):
        return (), []
    return tuple(shapes), types
