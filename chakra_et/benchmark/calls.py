"""Whether an operation can be called again: what its node tells, and what is missing."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any, Final

from chakra_et.benchmark import reasons
from chakra_et.benchmark.arguments import NO_MEMORY, WIDTHS, Opaque, decode, opaque, tensors
from chakra_et.benchmark.schema import Schema, parse_schema
from chakra_et.model import Nodes

BUILT_IN: Final = frozenset(
    {
        "_dtensor", "_quantized", "aten", "fsdp", "inductor", "mkldnn", "mkldnn_prepacked",
        "onednn", "prim", "prims", "quantized", "quantized_decomposed", "rng_prims", "rngprims",
        "sparse", "xnnpack",
    }
)  # fmt: skip
"""Namespaces of operators that PyTorch brings along."""
COMMUNICATES: Final = frozenset({"c10d", "_c10d_functional", "_c10d_functional_autograd"})
"""Namespaces of operators that communicate."""
LABELS: Final = frozenset({"profiler"})
"""Namespaces of operators that only mark something."""
BROUGHT_BY: Final = {
    "fsdp": "torch.distributed.fsdp._fully_shard._fsdp_collectives",
    "_dtensor": "torch.distributed.tensor",
    "quantized_decomposed": "torch.ao.quantization.fx._decomposed",
}
"""Modules of PyTorch that register a namespace only when they are imported."""
_CUT: Final = 4097
"""Values of a longer list that PyTorch's observer writes."""
_NO_TEXT: Final = (b"", b"[]")


@dataclass(frozen=True)
class Call:
    """What a node was called with and what it returned; `reason` says why it cannot be repeated."""

    schema: Schema | None
    inputs: list[Any]
    outputs: list[Any]
    reason: str = ""


def read_call(nodes: Nodes, row: int, schema_text: str, known: Container[str] = ()) -> Call:
    """The call of a node; `known` are namespaces that modules add to PyTorch's own."""
    schema = parse_schema(schema_text)
    given, returned = _decoded(nodes, row, "input"), _decoded(nodes, row, "output")
    call = Call(schema, given or [], returned or [])
    if schema is None:
        reason = reasons.BAD_SCHEMA if schema_text else reasons.NO_SCHEMA
    elif schema.namespace not in BUILT_IN and schema.namespace not in known:
        reason = reasons.unknown_operators(schema.namespace)
    elif schema.arguments and (missing := _missing(nodes, row)):
        reason = missing
    elif given is None or returned is None:
        reason = reasons.UNREADABLE
    else:
        reason = _misfit(schema, given) or _unknown(given + returned)
    return Call(call.schema, call.inputs, call.outputs, reason)


def _decoded(nodes: Nodes, row: int, side: str) -> list[Any] | None:
    io = nodes.io(int((nodes.input_code if side == "input" else nodes.output_code)[row]))
    if io is None:
        return []
    strides = nodes.attributes.get(row, f"{side}_strides")
    return decode(io.values, io.shapes, io.types, strides if isinstance(strides, str) else "")


def _missing(nodes: Nodes, row: int) -> str:
    """What a node with arguments lacks of their texts."""
    io = nodes.io(int(nodes.input_code[row]))
    if io is None or io.values.strip() in _NO_TEXT:
        return reasons.NO_INPUTS
    return "" if io.shapes.strip() and io.types.strip() else reasons.NO_SHAPES


def _misfit(schema: Schema, given: list[Any]) -> str:
    """Where the values are not those that the schema asks for."""
    if len(given) > len(schema.arguments):
        return reasons.OTHER_COUNT
    if any(isinstance(value, list) and len(value) == _CUT for value in given):
        return reasons.CUT
    if any(value.tag == NO_MEMORY for value in opaque(given)):
        return reasons.NO_MEMORY
    for argument, value in zip(schema.arguments, given, strict=False):
        if isinstance(value, Opaque) and not (argument.optional or argument.has_default):
            return reasons.unrecorded(argument.name, value.tag)
    rest = schema.arguments[len(given) :]
    return "" if all(a.has_default or a.optional for a in rest) else reasons.OTHER_COUNT


def _unknown(values: list[Any]) -> str:
    for tensor in tensors(values):
        if tensor.dtype not in WIDTHS:
            return reasons.unknown_dtype(tensor.dtype)
    return ""
