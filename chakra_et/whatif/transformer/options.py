"""How a step is run, told by which collectives there are and by the order of passes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from chakra_et.build import DTYPES
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.validators.view import ABSENT
from chakra_et.whatif.edit import MissedError
from chakra_et.whatif.transformer.stages import Call, Stage, sums_early
from chakra_et.workloads.plan import Exchange, Gather, Recompute, Schedule
from chakra_et.workloads.schedule import Kind, gpipe, interleaved, one_f_one_b, zero_bubble

_C = CollectiveType
_SCATTERED = (_C.REDUCE_SCATTER, _C.REDUCE_SCATTER_BLOCK)


def options_of(stages: list[Stage], fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Options that fit, the likeliest first: where two make the same graph, the usual one."""
    core = stages[0].first("attention", "forward")
    assert core is not None
    told = {
        "recompute": _recompute(stages[0]),
        "causal": _causal(core),
        "exchange": _exchange(stages[0], fields["cp"]),
    }
    schedules = _schedules(stages, fields)
    for (schedule, chunks), zero in product(
        schedules, _zeros(stages[0], fields["dp"] * fields["cp"])
    ):
        for extra in _gradients(stages[0], zero):
            yield told | {"schedule": schedule, "chunks": chunks, "zero": zero} | extra


def _recompute(stage: Stage) -> Recompute:
    if stage.first("attention", "recompute") is None:
        return Recompute.NONE
    whole = stage.first("activation", "recompute") is not None
    return Recompute.FULL if whole else Recompute.SELECTIVE


def _causal(core: Call) -> bool:
    """Whether attention does half of the products that its shapes have."""
    (batch, heads, queries, width), (_, _, keys, _) = core.inputs[:2]
    whole = 4 * batch * heads * queries * keys * width
    return core.flops is not None and core.flops < 0.75 * whole


def _exchange(stage: Stage, cp: int) -> Exchange:
    """Whether context-parallel ranks send each other keys and values, or gather them."""
    inside = stage.layers != ABSENT
    sends = inside & (stage.trace.nodes.type == NodeType.COMM_SEND)
    return Exchange.RING if cp == 1 or sends.any() else Exchange.ALL_GATHER


def _schedules(stages: list[Stage], fields: dict[str, Any]) -> list[tuple[Schedule, int]]:
    """Schedules whose order of passes is that of all stages. Raises MissedError where none is."""
    pp, batches = len(stages), fields["global_batch"] // (fields["micro_batch"] * fields["dp"])
    chunks = _chunks(stages[0])
    if chunks > 1:
        if batches % pp == 0 and all(
            _order(interleaved(pp, place, batches, chunks)) == stage.passes()
            for place, stage in enumerate(stages)
        ):
            return [(Schedule.INTERLEAVED, chunks)]
        raise MissedError(f"the order of passes of an interleaved pipeline of {chunks} chunks")
    rows = {
        Schedule.ONE_F_ONE_B: one_f_one_b,
        Schedule.GPIPE: gpipe,
        Schedule.ZERO_BUBBLE: zero_bubble,
    }
    late = {late for stage in stages if (late := _weights_late(stage)) is not None}
    found = [
        (name, 1)
        for name, row in rows.items()
        if late <= {name is Schedule.ZERO_BUBBLE}
        and all(_order(row(pp, place, batches)) == stage.passes()
               for place, stage in enumerate(stages))
    ]  # fmt: skip
    if not found:
        raise MissedError(
            f"the order of passes of a known schedule: rank {stages[0].rank} begins with "
            + ", ".join(f"{phase} {number}" for phase, number in stages[0].passes()[:6])
        )
    return found


def _weights_late(stage: Stage) -> bool | None:
    """Whether a backward pass goes through its layers once more, for the weights' gradients.

    None where there is one layer, which does not tell.
    """
    inside = stage.computes & (stage.phases == "backward") & (stage.layers != ABSENT)
    layers = stage.layers[np.flatnonzero(inside & (stage.micro_batches == 0))]
    return bool((np.diff(layers) > 0).any()) if len(np.unique(layers)) > 1 else None


def _order(passes: Any) -> list[tuple[str, int]]:
    every = [("forward" if p.kind is Kind.FORWARD else "backward", p.micro_batch) for p in passes]
    return [one for place, one in enumerate(every) if not place or one != every[place - 1]]


def _chunks(stage: Stage) -> int:
    """In how many runs of consecutive layers the layers of a stage lie."""
    layers = np.unique(stage.layers[stage.layers != ABSENT])
    return 1 + int((np.diff(layers) > 1).sum())


def _zeros(stage: Stage, replicas: int) -> list[int]:
    """ZeRO stages that fit the collectives around gradients and weights."""
    if replicas == 1:
        # Nothing is divided: then 0 and 1 are the same.
        return [1, 2, 3]
    if stage.collectives("gather"):
        return [3]
    sums = {kind for kind, size in stage.collectives("gradients") if size > 1}
    gathers = any(kind is _C.ALL_GATHER for kind, _ in stage.collectives("optimizer"))
    if sums & set(_SCATTERED):
        return [1, 3]
    return [2] if gathers else [0]


def _gradients(stage: Stage, zero: int) -> Iterator[dict[str, Any]]:
    """The bytes of a gradient, whether they are summed early, and what is gathered at once."""
    step = stage.first("optimizer", "optimizer")
    if step is None or step.moved_bytes is None or not step.inputs:
        raise MissedError("an operator of type 'optimizer' that tells its bytes and shape")
    layer = stage.first("norm", "forward")
    assert layer is not None
    element = next(size for size, called in DTYPES.values() if f"Tensor({called})" == layer.dtype)
    told = step.moved_bytes // step.inputs[0][0] - 24 - element
    usual = 4 if zero <= 1 else element
    gathers = (Gather.MODULE, Gather.LAYER) if zero == 3 else (Gather.MODULE,)
    early = sums_early(stage)
    overlaps = [True] if early and zero < 2 else [False, True] if zero < 2 else [False]
    for overlap, gather in product(overlaps, gathers):
        yield {
            "gradient_bytes": 0 if told == usual else told, "overlap": overlap, "gather": gather,
        }  # fmt: skip
