"""Rules about executing the operators of a trace again."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.benchmark import reasons
from chakra_et.benchmark.plan import Kind, Plan, plan_of
from chakra_et.columns import Mask
from chakra_et.errors import ChakraError
from chakra_et.validators.finding import NOTHING, Hits
from chakra_et.validators.rule import trace_rule
from chakra_et.validators.view import TraceView

_OPERATORS: Final = ("aten::", "c10d::", "torchvision::", "fbgemm::")


@trace_rule(
    "ET901",
    "An operator has no schema.",
    why="Which overload to call is not known.",
    cure="Record with ExecutionTraceObserver of torch 2.0 or newer.",
)
def no_schema(view: TraceView) -> Hits:
    """Nodes called like operators, without `op_schema`."""
    named = np.array([name.startswith(_OPERATORS) for name in view.nodes.names] or [False])
    rows = np.flatnonzero(named[view.nodes.name_code] & ~view.present("op_schema") & view.on_host)
    return view.hits(rows, "no op_schema")


@trace_rule(
    "ET902",
    "The inputs of an operator are unknown.",
    why="There is nothing to call it with.",
    cure="Record with ExecutionTraceObserver; a profile alone has no values.",
    kin="ET903",
)
def no_inputs(view: TraceView) -> Hits:
    """Operators with parameters in their schema, and no input values."""
    rows = np.flatnonzero(_with_parameters(view) & ~_has(view, 0))
    return view.hits(rows, "no input values")


@trace_rule(
    "ET903",
    "An operator's inputs have no shapes or no types.",
    why="Tensors to call it with cannot be made.",
    cure="Record with ExecutionTraceObserver, or with record_shapes=True.",
    kin="ET601 ET902",
)
def no_shapes_or_types(view: TraceView) -> Hits:
    """Operators with input values, but without their shapes or types."""
    rows = np.flatnonzero(_with_parameters(view) & _has(view, 0) & ~(_has(view, 1) & _has(view, 2)))
    return view.hits(rows, "no shapes or no types of inputs")


def _with_parameters(view: TraceView) -> Mask:
    """Nodes whose schema has parameters."""
    schemas = view.texts("op_schema")
    return np.fromiter(
        ("(" in s and "()" not in s.split("->")[0] for s in schemas), np.bool_, len(schemas)
    )


def _has(view: TraceView, part: int) -> Mask:
    """Nodes whose inputs have a text in place `part`: values, shapes, types."""
    said = np.array([bool(io[part].strip()) for io in view.nodes.texts] + [False])
    return said[view.nodes.input_code]


@trace_rule(
    "ET904",
    "An operator cannot be called again.",
    why="`chakra run` leaves it out: its time is missing, and what it returns is made up.",
    cure="The finding says why. --module brings operators, --stand-in takes their time.",
    kin="ET901 ET902 ET903",
)
def left_out(view: TraceView) -> Hits:
    """Operators that the plan of a run leaves out, but for communication and generated kernels."""
    plan = _plan(view)
    if plan is None:
        return NOTHING
    found = {o.row: o.reason for o in plan.operations if o.reason and o.kind is Kind.OPERATOR}
    found |= {replaced.row: replaced.reason for replaced in plan.replaced}
    rows = np.array(sorted(r for r in found if found[r] not in _TOLD_BY_OTHERS), np.int64)
    return view.hits(rows, lambda place: found[int(rows[place])])


@trace_rule(
    "ET905",
    "A generated kernel needs a device, and its source.",
    why="`chakra run` on the host leaves it out.",
    cure="Record with ENABLE_PYTORCH_EXECUTION_TRACE_EXTRAS=1, and run on the kind of device.",
)
def generated_kernels(view: TraceView) -> Hits:
    """Kernels that a compiler has generated, as operations of the plan of a run."""
    plan = _plan(view)
    found = [o.row for o in plan.operations if o.kind is Kind.KERNEL] if plan else []
    return view.hits(np.array(found, np.int64), "it was generated")


_TOLD_BY_OTHERS: Final = (reasons.NO_SCHEMA, reasons.NO_INPUTS, reasons.NO_SHAPES)
"""What ET901, ET902 and ET903 say of more operators."""


def _plan(view: TraceView) -> Plan | None:
    """The plan of a run; None where the trace has nothing to run."""
    try:
        return plan_of(view.trace)
    except ChakraError:
        return None
