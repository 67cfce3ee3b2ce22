"""Edits of how a model is built and run: its sizes, degrees of parallelism, and options.

A run that follows a plan node by node is written anew after another plan. Of other runs, such as
recorded ones, some edits cut and join the graph itself: see `chakra_et.whatif.recorded`. All of it
is imported by who makes such an edit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet
from chakra_et.shown import number_of
from chakra_et.whatif.edit import Change, Edit, MissedError
from chakra_et.whatif.values import size_bytes, whole

if TYPE_CHECKING:
    from chakra_et.whatif.transformer import Recognised, TableTimes
    from chakra_et.workloads.plan import Plan

Recorded: TypeAlias = Callable[[TraceSet, str], tuple[TraceSet, Change]]
_RECORDED: Final = {
    "layers": ("stack", "restacked"),
    "bucket": ("buckets", "rebucketed"),
    "dp": ("replicas", "with_replicas"),
    "failed": ("replicas", "without_replica"),
}
"""Edits that a recording can have, by module and function of `chakra_et.whatif.recorded`."""
_SIZES: Final = ("layers", "hidden", "ffn", "heads", "kv_heads", "vocabulary", "experts",
                 "expert_ffn", "experts_per_token")  # fmt: skip
_AXES: Final = ("tp", "cp", "ep", "dp", "pp")
_PHASES: Final = {
    **dict.fromkeys(("schedule", "zero", "recompute", "bucket"), ("train",)),
    "sequence": ("train", "prefill", "serve"),
    "context": ("decode",),
    "tokens": ("decode", "serve"),
}
"""Fields of a plan that count in some phases alone."""
_NUMBERS: Final = (*_SIZES, *_AXES, "sequence", "micro_batch", "global_batch", "context", "tokens")


@dataclass(frozen=True)
class PlanChange:
    """Fields of a plan with other values: `fields` are told the plan, `model` is of the model.

    `recorded` makes the change in a run that follows no plan, where that can be done. `table` has
    the times of what the change makes new.
    """

    text: str
    fields: Callable[[Plan], dict[str, Any]] = lambda _: {}
    model: tuple[tuple[str, int], ...] = ()
    recorded: Recorded | None = None
    table: TableTimes | None = None


def change_plan(traces: TraceSet, changes: Sequence[PlanChange]) -> tuple[TraceSet, list[Change]]:
    """The run after changes of its plan, all made at once.

    Raises MissedError where neither the run follows a plan nor the graph shows what is to change,
    or where no plan can run that has these changes.
    """
    text = " ".join(change.text for change in changes)
    try:
        _require_steps(traces)
        from chakra_et.whatif.transformer import alike, rebuild, recognise

        found = recognise(traces)
    except MissedError as missed:
        return _change_recorded(traces, changes, missed)
    try:
        plan = changed(found.plan, changes)
    except ChakraError as error:
        raise MissedError(f"{text}: {error.problem}", error.remedy or "") from error
    told = (_told(found),)
    if plan == found.plan:
        return traces, [Change(text, 0, 0, 0, "structure", told=told)]
    tables = [change.table for change in changes if change.table is not None]
    made = rebuild(found, plan, tables[-1] if tables else None)
    if alike(made.traces, traces):
        return made.traces, [Change(text, 0, 0, 0, "structure", told=told)]
    before, after = (sum(int(t.nodes.duration_ns.sum()) for t in each.values())
                     for each in (traces, made.traces))  # fmt: skip
    nodes = sum(len(trace.nodes) for trace in made.traces.values())
    return made.traces, [
        Change(text, nodes, before, after, "structure", made.provenance, told, found.seen.left_out)
    ]


def _require_steps(traces: TraceSet) -> None:
    """Raise MissedError where nodes do not tell what they are a part of, as in a recording."""
    named = next(iter(traces.values())).nodes.attributes.named
    lacking = [name for name in ("op_type", "phase", "layer", "micro_batch") if not named(name)]
    if lacking:
        raise MissedError(f"nodes with {', '.join(lacking)}, which tell the steps of a model apart")


def _change_recorded(
    traces: TraceSet, changes: Sequence[PlanChange], missed: MissedError
) -> tuple[TraceSet, list[Change]]:
    """The run after changes of its graph, one after the other."""
    done = []
    for change in changes:
        if change.recorded is None:
            raise MissedError(
                f"{change.text} needs a run that follows a plan, and misses {missed.problem}",
                "In a recording, lengths=OLD:NEW changes lengths of tensors; layers, dp and bucket "
                "are found in its graph.",
            )
        try:
            traces, one = change.recorded(traces, change.text)
        except MissedError as error:
            raise MissedError(
                f"{change.text} misses {error.problem}; nor is this a run that follows a plan: it "
                f"misses {missed.problem}",
                error.remedy or "",
            ) from error
        done.append(one)
    return traces, done


def changed(plan: Plan, changes: Sequence[PlanChange]) -> Plan:
    """The plan after changes. As many micro-batches as before, unless one of them says otherwise.

    Raises ChakraError where what is wanted does not fit together.
    """
    from chakra_et.workloads.model import Model, unfit

    fields: dict[str, Any] = {}
    sizes = {name: getattr(plan.model, name) for name in plan.model.__struct_fields__}
    for change in changes:
        fields |= change.fields(plan)
        sizes |= dict(change.model)
    model = Model(**sizes)
    wrong = unfit(model) or _of_other_phases(plan, fields)
    if wrong:
        raise ChakraError(wrong, remedy="Choose sizes that go together.")
    micro_batch, dp = (fields.get(name, getattr(plan, name)) for name in ("micro_batch", "dp"))
    fields.setdefault("global_batch", micro_batch * dp * plan.micro_batches)
    return replace(plan, model=model, **fields)


def _of_other_phases(plan: Plan, fields: dict[str, Any]) -> str:
    """Which field does nothing in a run of this phase; empty if none is of that kind."""
    found = [name for name, phases in _PHASES.items()
             if name in fields and plan.phase.value not in phases]  # fmt: skip
    return f"{found[0]} does nothing: this is {_work(plan)}" if found else ""


def _told(found: Recognised) -> str:
    plan, model = found.plan, found.plan.model
    axes = ", ".join(f"{axis} {getattr(plan, axis)} ({why})" for axis, why in found.evidence.items()
                     if axis in _AXES and getattr(plan, axis) > 1)  # fmt: skip
    experts = f"{model.experts} experts" if model.experts else f"ffn {model.ffn}"
    told = (
        f"{_work(plan)} of {model.layers} layers, hidden {model.hidden}, {model.heads} heads, "
        f"{experts}, {plan.micro_batches} micro-batches of {plan.micro_batch} x {plan.sequence} "
        f"tokens, {plan.dtype}"
    )
    return "; ".join(text for text in (told, axes, found.sums) if text)


def _work(plan: Plan) -> str:
    """What is run, for people."""
    from chakra_et.workloads.plan import Phase

    if plan.phase is Phase.TRAIN:
        return f"a {plan.schedule.value} step"
    if plan.phase is Phase.PREFILL:
        return "a prefill"
    past = f" after {plan.context}" if plan.phase is Phase.DECODE else ""
    return f"{plan.phase.value} of {number_of(plan.tokens, 'token')}{past}"


def _recorded(name: str, value: int, traces: TraceSet, text: str) -> tuple[TraceSet, Change]:
    """The run after an edit of its own graph."""
    module, maker = _RECORDED[name]
    edit = getattr(import_module(f"chakra_et.whatif.recorded.{module}"), maker)
    made: tuple[TraceSet, Change] = edit(traces, text, value)
    return made


# ---------------------------------------------------------------------------------------------
# How edits are written


def _edit(change: PlanChange) -> Edit:
    def apply(traces: TraceSet) -> tuple[TraceSet, Change | None]:
        traces, (done,) = change_plan(traces, [change])
        return traces, done

    return Edit(change.text, apply, plan=change)


def _number(name: str) -> Callable[[str, str, str], Edit]:
    """An edit of a field of the plan, or of the model, that is a whole number."""

    def made(text: str, _: str, value: str) -> Edit:
        wanted = whole(text, value, least=1)
        recorded = None
        if name in _RECORDED:
            recorded = partial(_recorded, name, wanted)
        if name in _SIZES:
            return _edit(PlanChange(text, model=((name, wanted),), recorded=recorded))
        return _edit(PlanChange(text, lambda _: {name: wanted}, recorded=recorded))

    return made


def _one_of(name: str, told: Callable[[], dict[str, Any]]) -> Callable[[str, str, str], Edit]:
    """An edit of a field of the plan that has few values."""

    def made(text: str, _: str, value: str) -> Edit:
        values = told()
        if value not in values:
            raise ChakraError(f"{text}: expected one of {', '.join(values)}", remedy="See -h.")
        return _edit(PlanChange(text, lambda _: {name: values[value]}))

    return made


def _types() -> dict[str, Any]:
    from chakra_et.build import DTYPES

    return {name: name for name in DTYPES if name[:2] in ("fp", "bf")}


def _recomputes() -> dict[str, Any]:
    from chakra_et.workloads.plan import Recompute

    return {each.value: each for each in Recompute}


def _schedule(text: str, _: str, value: str) -> Edit:
    """The order of passes, with the chunks of an interleaved one."""
    from chakra_et.workloads.plan import Schedule

    name, _, chunks = value.partition(":")
    if name not in [each.value for each in Schedule] or bool(chunks) != (name == "interleaved"):
        raise ChakraError(
            f"{text}: expected one of 1f1b, gpipe, zero-bubble, interleaved:CHUNKS",
            remedy="Write schedule=interleaved:2.",
        )
    wanted = {"schedule": Schedule(name), "chunks": whole(text, chunks, 2) if chunks else 1}
    return _edit(PlanChange(text, lambda _: wanted))


def _order(text: str, _: str, value: str) -> Edit:
    """Which ranks are neighbours: the placement of the axes of parallelism."""
    return _edit(PlanChange(text, lambda _: {"order": value}))


def _zero(text: str, _: str, value: str) -> Edit:
    """What replicas divide among themselves."""
    stage = whole(text, value, least=0)
    return _edit(PlanChange(text, lambda _: {"zero": stage}))


def _bucket(text: str, _: str, value: str) -> Edit:
    """The most bytes of gradients that are summed at once, while the backward pass goes on."""
    size = 0 if value == "all" else size_bytes(text, value)
    return _edit(
        PlanChange(
            text,
            lambda plan: {"overlap": True, "bucket": size // plan.gradient_element},
            recorded=partial(_recorded, "bucket", size),
        )
    )


def _kernel_times(text: str, _: str, value: str) -> Edit:
    """What other edits of the plan make new takes what a table says of its shapes."""
    from chakra_et.whatif.retime import table_of
    from chakra_et.whatif.transformer import TableTimes

    return _edit(PlanChange(text, table=TableTimes(*table_of(text, value))))


def _failed(text: str, _: str, value: str) -> Edit:
    """A rank fails, and the run goes on without its replica."""
    rank = whole(text, value, least=0)

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        try:
            return _recorded("failed", rank, traces, text)
        except MissedError as missed:
            raise MissedError(f"{text} misses {missed.problem}", missed.remedy or "") from missed

    return Edit(text, apply)


PLAN_EDITS: Final[dict[str, Callable[[str, str, str], Edit]]] = {
    **{name: _number(name) for name in _NUMBERS},
    "schedule": _schedule,
    "sequence_parallel": _one_of("sequence_parallel", lambda: {"on": True, "off": False}),
    "precision": _one_of("dtype", _types),
    "recompute": _one_of("recompute", _recomputes),
    "zero": _zero,
    "order": _order,
    "bucket": _bucket,
    "kernel_times": _kernel_times,
    "failed": _failed,
}
PLAN_FORMS: Final = {
    **{name: f"{name}=N" for name in (*_NUMBERS, "zero")},
    "schedule": "schedule=1f1b|gpipe|zero-bubble|interleaved:CHUNKS",
    "sequence_parallel": "sequence_parallel=on|off",
    "precision": "precision=TYPE",
    "recompute": "recompute=none|selective|full",
    "order": "order=AXIS-AXIS-...",
    "bucket": "bucket=SIZE|all",
    "kernel_times": "kernel_times=TABLE[:NAME]",
    "failed": "failed=RANK",
}  # fmt: skip
"""How each edit is written."""
