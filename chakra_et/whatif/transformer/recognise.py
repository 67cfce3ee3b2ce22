"""From a run to the plan that it follows.

A plan counts only when the graph that follows from it is the one that is there, node by node. The
one that a set says it follows is tried first: it also tells what no graph does. Else the graph of a
training step tells: degrees come from groups, sizes from the shapes of operators, options from
which collectives there are, and from the order of passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.build import DTYPES
from chakra_et.build.grid import Grid
from chakra_et.io.json_text import from_json
from chakra_et.model import Trace, TraceSet
from chakra_et.validators.view import ABSENT
from chakra_et.whatif.edit import MissedError
from chakra_et.whatif.transformer.buckets import bucketed, told_sums
from chakra_et.whatif.transformer.options import options_of
from chakra_et.whatif.transformer.same import Seen, differs
from chakra_et.whatif.transformer.sizes import weights_of
from chakra_et.whatif.transformer.stages import AXES, Call, Stage, grid_of
from chakra_et.whatif.transformer.told import sharing, told_plan
from chakra_et.workloads.model import Model
from chakra_et.workloads.plan import ORDER, Plan

_MOST: Final = 64
"""So many plans are tried, at most; mostly it is one."""


@dataclass(frozen=True)
class Recognised:
    """A plan whose graph is the given one; `seen` has what its operators and transfers took.

    `evidence` says for each axis how it was told, `sums` what tells how replicas share gradients.
    `all_flops` and `tensors` say what nodes tell.
    """

    plan: Plan
    evidence: dict[str, str]
    sums: str
    all_flops: bool
    tensors: bool
    seen: Seen


def recognise(traces: TraceSet) -> Recognised:
    """The plan that a run follows. Raises MissedError, which says what was not found."""
    told = told_plan(traces)
    if told is None:
        return _from_graph(traces)
    evidence = dict.fromkeys(AXES, "the set says so")
    found = _borne_out(told, traces, evidence, sharing(told))
    if isinstance(found, Recognised):
        return found
    try:
        return _from_graph(traces)
    except MissedError as missed:
        raise MissedError(f"{found}: so says the set that it is") from missed


def _from_graph(traces: TraceSet) -> Recognised:
    """The plan that the graph of a run follows, whatever it says of itself."""
    trace = next(iter(traces.values()))
    grid, evidence = grid_of(traces)
    stages = [Stage(traces[rank], rank) for rank in _stage_ranks(grid)]
    closest = ""
    for plan in _plans(stages, grid, _name_of(trace)):
        found = _borne_out(plan, traces, evidence, told_sums(plan, stages, grid))
        if isinstance(found, Recognised):
            return found
        closest = closest or found
    raise MissedError(
        closest or "sizes of weights that fit the optimizer's: biases, tied head, positions"
    )


def _borne_out(
    plan: Plan, traces: TraceSet, evidence: dict[str, str], sums: str
) -> Recognised | str:
    """The run as one of a plan; where its graph is another one, the first difference."""
    trace = next(iter(traces.values()))
    tensors = bool(trace.nodes.attributes.named("inputs"))
    norm = next(Stage(trace, 0).of("norm"), None)
    all_flops = norm is not None and norm.flops is not None
    seen = Seen()
    missed = differs(plan, traces, seen, tensors=tensors, all_flops=all_flops)
    return missed or Recognised(plan, evidence, sums, all_flops, tensors, seen)


def _stage_ranks(grid: Grid) -> list[int]:
    """The first rank of each stage."""
    stages = grid.axes.get("pp", 1)
    return [grid.rank(pp=stage) if stages > 1 else 0 for stage in range(stages)]


def _plans(stages: list[Stage], grid: Grid, name: str) -> Iterator[Plan]:
    """Plans that sizes, groups and the order of passes allow, the likeliest first."""
    degrees = {axis: grid.axes.get(axis, 1) for axis in AXES}
    facts, model = _facts(stages, degrees, name)
    fields = {**facts, **degrees, "order": _order(grid)}
    tried = 0
    for options in options_of(stages, fields):
        for weights in weights_of(stages, model, {**fields, **options}):
            tried += 1
            if tried > _MOST:
                return
            yield from bucketed(Plan(model=weights, **fields, **options), stages, grid)


def _order(grid: Grid) -> str:
    """The order of axes, those that have one rank where they mostly are."""
    long = [axis for axis, size in grid.axes.items() if size > 1]
    places = iter(long)
    return "-".join(next(places) if axis in long else axis for axis in ORDER.split("-"))


def _facts(stages: list[Stage], degrees: dict[str, int], name: str) -> tuple[dict[str, Any], Model]:
    """What shapes tell: fields of the plan, and the model but for which weights it has."""
    start = stages[0]
    core, norm = (_first(start, kind) for kind in ("attention", "norm"))
    words, activation = (_first(start, kind) for kind in ("embedding", "activation"))
    if start.first("permute", "forward") is not None:
        raise MissedError("a dense MLP: there are experts behind a router")
    if len(core.inputs) < 3 or any(len(shape) != 4 for shape in core.inputs[:3]):
        raise MissedError("attention on queries, keys and values of (batch, heads, tokens, width)")
    (batch, heads, tokens, width), (_, kv, _, _), (_, _, _, value_width) = core.inputs[:3]
    if width != value_width:
        raise MissedError("attention with heads of one width: keys and values are compressed")
    hidden, (rows, _, _) = norm.inputs[0][-1], norm.inputs[0]
    tp = degrees["tp"]
    up, down = activation.inputs[0][-1], activation.outputs[0][-1]
    layers = {int(n) for stage in stages for n in np.unique(stage.layers) if n != ABSENT}
    if layers != set(range(len(layers))):
        raise MissedError(f"layers from 0 on: there are {sorted(layers)[:8]}")
    micro_batches = len(set(start.micro_batches.tolist()) - {ABSENT})
    dtypes = [name for name, (_, called) in DTYPES.items() if f"Tensor({called})" == core.dtype]
    if not dtypes:
        raise MissedError(f"a known type of elements: attention has {core.dtype!r}")
    model = Model(
        name=name, layers=len(layers), hidden=hidden, heads=heads * tp, kv_heads=kv * tp,
        ffn=down * tp, vocabulary=words.inputs[1][0] * tp, gated=up == 2 * down,
        head_size=0 if width * heads * tp == hidden else width,
    )  # fmt: skip
    if model.kv_heads == model.heads:
        model = _with(model, kv_heads=0)
    facts = {
        "micro_batch": batch, "sequence": tokens * degrees["cp"], "dtype": dtypes[0],
        "global_batch": batch * micro_batches * degrees["dp"],
        "sequence_parallel": tp > 1 and rows * tp == tokens,
    }  # fmt: skip
    return facts, model


def _first(stage: Stage, kind: str) -> Call:
    found = stage.first(kind, "forward")
    if found is None or not found.inputs or not found.outputs:
        raise MissedError(
            f"an operator of type {kind!r} with shapes in a forward pass of rank {stage.rank}"
        )
    return found


def _name_of(trace: Trace) -> str:
    """What a set calls its model, for people. Nothing else is taken from what it says of itself."""
    text = trace.metadata.get("workload")
    try:
        return str(from_json(str(text))["model"]["name"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return "recognised"


def _with(model: Model, **changes: Any) -> Model:
    """The model with some other fields."""
    return Model(**{name: getattr(model, name) for name in model.__struct_fields__} | changes)
