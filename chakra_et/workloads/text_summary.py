"""What became of a workload text: its collectives, counted, and what is left out and why."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from chakra_et.build.columns import Programmed
from chakra_et.build.grid import Ranks
from chakra_et.definitions import CollectiveType
from chakra_et.workloads.summary import distinct
from chakra_et.workloads.text_layout import Layout
from chakra_et.workloads.text_pipeline import pipeline
from chakra_et.workloads.text_program import WEIGHTS_FIRST
from chakra_et.workloads.texts import Pass, Policy

_RUN: Final = {Policy.INFERENCE: (Pass.FORWARD,)}


class Communicated:
    """Watches the programs made of a text, and counts the communication of a rank of each."""

    def __init__(self) -> None:
        self.programs: list[dict[str, Any]] = []

    def add(self, columns: Programmed, ranks: Ranks) -> None:
        """Count one program."""
        counts: Counter[tuple[str, str, str, int]] = Counter()
        for operation, tags, count in distinct(columns):
            phase = tags.phase or ""
            if operation.family is not None:
                type = CollectiveType(operation.collective or 0).name
                counts[phase, type, operation.family, operation.size_bytes or 0] += count
            elif operation.peer is not None:
                counts[phase, operation.type.name, "pp", operation.size_bytes or 0] += count
        keys = ("phase", "type", "group", "bytes")
        told = [
            {**dict(zip(keys, key, strict=True)), "count": count} for key, count in counts.items()
        ]
        self.programs.append({"ranks": ranks.tolist(), "communication": told})


class TextSummary(Communicated):
    """What became of a text of ASTRA-sim 1.0 or SimAI."""

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self._layout = layout

    def as_dict(self) -> dict[str, Any]:
        """For JSON: `bytes` are those of a rank's input, as `comm_size` is."""
        text = self._layout.text
        return {
            "policy": text.policy.value,
            "dialect": text.dialect.value,
            "layers": len(text.layers),
            "world_size": self._layout.workload.grid.world_size,
            "grid": self._layout.workload.grid.axes,
            "programs": self.programs,
            "left_out": [{"reason": r, "count": c} for r, c in left_out(self._layout).items()],
        }


def left_out(layout: Layout) -> dict[str, int]:
    """What is in the text and not in the graph, by reason; counted once, for one step."""
    text, found = layout.text, Counter[str]()
    for layer in text.layers:
        delayed = False
        for which, work in layer.passes.items():
            if which not in _RUN.get(text.policy, Pass):
                found[f"the policy has no {which.value}"] += bool(work.cycles or work.collective)
                continue
            if text.policy in WEIGHTS_FIRST and layer is text.layers[0]:
                unneeded = which is Pass.INPUT_GRADIENT and work.cycles > 0
                found["computed gradients of the first layer's input: nothing needs it"] += unneeded
            if text.policy is Policy.MICRO:
                found["computations: a micro-benchmark has none"] += work.cycles > 0
            if work.collective is None:
                found["bytes without a collective"] += work.size_bytes > 0
                continue
            family = layout.workload.families[layout.family(layer, which)]
            if work.size_bytes and family.size > 1:
                delayed = True
            elif work.size_bytes:
                found[f"collectives in groups of one rank ({family.name})"] += 1
            else:
                found["collectives of 0 bytes"] += 1
        found["updates behind no collective"] += layer.update_cycles > 0 and not delayed
    found["lines behind the last layer"] += text.lines_left
    if text.numbers.get("pp_comm") and pipeline(layout) is None:
        found["pp_comm: the text does not show its micro-batches, or there is one stage"] += 1
    return {reason: count for reason, count in found.items() if count}
