"""The plan that a set says it follows, which counts where its graph bears it out."""

from __future__ import annotations

import msgspec

from chakra_et.errors import ChakraError
from chakra_et.io.json_text import from_json
from chakra_et.model import Trace, TraceSet
from chakra_et.workloads.plan import Phase, Plan


def told_plan(traces: TraceSet) -> Plan | None:
    """The plan in the metadata of a set of `chakra generate llm`; None where there is none.

    Nor is there one where ranks are missing, or where it makes more nodes than there are.
    """
    plan = _read(next(iter(traces.values())))
    if plan is None or list(traces) != list(range(plan.world_size)):
        return None
    nodes = sum(len(trace.nodes) for trace in traces.values())
    passes = plan.micro_batches * (plan.tokens if plan.phase is Phase.DECODE else 1)
    return plan if plan.model.layers * passes <= nodes else None


def _read(trace: Trace) -> Plan | None:
    try:
        told = from_json(str(trace.metadata.get("workload")))
        return msgspec.convert(told, Plan) if told["kind"] == "llm" else None
    except (msgspec.MsgspecError, KeyError, TypeError, ChakraError):
        return None


def sharing(plan: Plan) -> str:
    """How replicas share gradients and weights, for people."""
    if plan.phase is not Phase.TRAIN:
        return ""
    early = ", gradients summed while the backward pass goes on" if plan.overlap else ""
    return f"ZeRO {plan.zero}{early}"
