"""Stages of a pipeline in SimAI's texts: where micro-batches begin and end, and their messages.

AICB lists the layers of one stage for all micro-batches of a step, one behind the other; SimAI runs
them on every stage, all forward passes before all backward passes. A micro-batch begins with an
`embedding_layer`, and is followed by the next, or by the loss and the optimizer. `pp_comm` is what
goes over a boundary for a micro-batch and a chunk (`vpp`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chakra_et.build import Rank
from chakra_et.build.graph import Done
from chakra_et.workloads.text_layout import Layout
from chakra_et.workloads.texts import WorkloadText

_FIRST: Final = "embedding_layer"
_BEHIND: Final = ("cross_entropy", "optimizer")


@dataclass(frozen=True)
class Pipeline:
    """Messages of `size_bytes`, at the first and the last layer of each micro-batch."""

    stages: int
    size_bytes: int
    first: dict[int, int]
    last: dict[int, int]

    def messages(
        self, rank: Rank, layer: int, after: Sequence[Done], *, forward: bool, before: bool
    ) -> list[Done]:
        """Receive `before` a layer or send behind it; what the layer waits for."""
        ends = self.first if forward == before else self.last
        if layer not in ends:
            return []
        stage = rank.coordinate("pp")
        way = -1 if forward == before else 1
        if not 0 <= stage + way < self.stages:
            return []
        what = "activations" if forward else "gradients"
        with rank.on(micro_batch=ends[layer]):
            if before:
                return [
                    rank.receive(
                        rank.peer(pp=way), self.size_bytes, name=f"receive {what}", after=after
                    )
                ]
            rank.send(rank.peer(pp=way), self.size_bytes, name=f"send {what}", after=after)
        return []


def pipeline(layout: Layout) -> Pipeline | None:
    """The messages of a workload's pipeline; None where there are none, or none can be placed."""
    text = layout.text
    size = text.numbers.get("pp_comm", 0) * (text.numbers.get("vpp") or 1)
    firsts = _firsts(text)
    if layout.stages == 1 or not size or len(firsts) != text.numbers.get("ga"):
        return None
    lasts = [*(first - 1 for first in firsts[1:]), _end(text, firsts)]
    return Pipeline(
        layout.stages, size,
        {layer: number for number, layer in enumerate(firsts)},
        {layer: number for number, layer in enumerate(lasts)},
    )  # fmt: skip


def _firsts(text: WorkloadText) -> list[int]:
    return [number for number, layer in enumerate(text.layers) if layer.name == _FIRST]


def _end(text: WorkloadText, firsts: list[int]) -> int:
    """The last layer of the last micro-batch."""
    for number in range(firsts[-1], len(text.layers)):
        if text.layers[number].name.startswith(_BEHIND):
            return number - 1
    return len(text.layers) - 1
