"""Operations as lines of Python: who writes them, and how values are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Protocol

from chakra_et.benchmark import reasons
from chakra_et.benchmark.arguments import Opaque
from chakra_et.benchmark.calls import BROUGHT_BY
from chakra_et.benchmark.equivalents import on_the_host
from chakra_et.benchmark.plan import Kind, Operation, Plan
from chakra_et.benchmark.schema import Argument, Schema, is_name
from chakra_et.benchmark.views import Ref, refs

SCALAR_TYPES: Final = (
    "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex32",
    "complex64", "complex128", "bool", "qint8", "quint8", "qint32", "bfloat16", "quint4x2",
    "quint2x4", "bits1x8", "bits2x4", "bits4x2", "bits8", "bits16", "float8_e5m2",
    "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz", "uint16", "uint32", "uint64",
)  # fmt: skip
"""PyTorch's types of elements by their numbers (`c10/core/ScalarType.h`)."""
_LAYOUTS: Final = ("strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr",
                   "sparse_bsc", "jagged")  # fmt: skip
_FORMATS: Final = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_NAMED: Final = {"ScalarType": SCALAR_TYPES, "Layout": _LAYOUTS, "MemoryFormat": _FORMATS}
"""Types whose values are recorded as numbers, and what PyTorch calls these."""

DEVICE_ONLY: Final = frozenset(
    {"aten::record_stream", "aten::pin_memory", "aten::_pin_memory", "aten::is_pinned"}
)
"""Operators that concern streams of a device, or memory that is locked for it."""

WITH_GRADIENTS: Final = frozenset({"aten::mkldnn_rnn_layer"})
"""Operators that return what their gradient reads only where gradients are on."""


class Writer(Protocol):
    """Writes operations of some kinds as statements.

    In them `t[17]` is the tensor of view 17, and the functions of `runtime` have their names.
    """

    kinds: frozenset[Kind]

    def refuses(self, plan: Plan, operation: Operation) -> str:
        """Why an operation cannot be written; empty if it can."""

    def statements(self, plan: Plan, number: int) -> list[str]:
        """The lines of an operation."""

    def prelude(self) -> list[str]:
        """Lines at the head of the program: imports, names, groups."""


@dataclass
class OperatorWriter:
    """Writes operators as calls of `torch.ops`."""

    modules: tuple[str, ...] = ()
    """Modules that register operators, imported by the program."""
    on_host: bool = True
    """Whether there is no device, so that what only concerns one has nothing to do."""
    present: Callable[[str], bool] | None = None
    """Tells whether PyTorch has an overload; None where nobody can say."""
    kinds: frozenset[Kind] = frozenset({Kind.OPERATOR})

    def __post_init__(self) -> None:
        self._names: dict[str, str] = {}
        self._modules = dict.fromkeys(self.modules)

    def refuses(self, plan: Plan, operation: Operation) -> str:
        """Why an operator cannot be called; those that a plan refuses cannot."""
        schema = self._as_here(operation).schema
        if schema is not None and self.on_host and schema.qualified in DEVICE_ONLY:
            return reasons.DEVICE_ONLY
        if operation.reason or schema is None:
            return operation.reason
        if schema.namespace in BROUGHT_BY:
            self._modules[BROUGHT_BY[schema.namespace]] = None
            if self.present is not None:
                import_module(BROUGHT_BY[schema.namespace])
        if self.present is not None and not self.present(schema.path):
            return reasons.absent(schema.path)
        return ""

    def statements(self, plan: Plan, number: int) -> list[str]:
        """One line: the call, and what it returns."""
        operation = self._as_here(plan.operations[number])
        assert operation.schema is not None
        call = f"{self._name(operation.schema)}({arguments(operation)})"
        target = returned(operation)
        line = f"{target} = {call}" if target else call
        with_gradients = operation.schema.qualified in WITH_GRADIENTS
        return [f"with torch.enable_grad(): {line}" if with_gradients else line]

    def prelude(self) -> list[str]:
        """Modules, and a name for each overload that was written."""
        lines = [f"import {module}" for module in self._modules]
        return lines + [f"{name} = {overload}" for overload, name in self._names.items()]

    def _as_here(self, operation: Operation) -> Operation:
        return on_the_host(operation) if self.on_host else operation

    def _name(self, schema: Schema) -> str:
        suffix = "" if schema.overload == "default" else f"_{schema.overload}"
        name = f"{schema.namespace}_{schema.name}{suffix}"
        return self._names.setdefault(schema.expression, name)


def arguments(operation: Operation) -> str:
    """The arguments of a call, by place and by name as the schema has them."""
    assert operation.schema is not None
    parts = []
    for argument, value in zip(operation.schema.arguments, operation.inputs, strict=False):
        text = literal(value, argument)
        parts.append(_by_name(argument.name, text) if argument.by_name else text)
    return ", ".join(parts)


def _by_name(name: str, text: str) -> str:
    return f"{name}={text}" if is_name(name) else f"**{{{name!r}: {text}}}"


def literal(value: Any, argument: Argument) -> str:
    """A value as Python writes it."""
    kind = argument.type.rstrip("?")
    if isinstance(value, list):
        inner = Argument(kind.partition("[")[0], argument.name, False, False, False)
        return f"[{', '.join(literal(item, inner) for item in value)}]"
    if isinstance(value, Ref):
        return f"t[{value.view}]"
    if value is None or isinstance(value, Opaque):
        return "None"
    if argument.name == "pin_memory":
        return "False"
    if kind == "Device" and isinstance(value, str):
        return f"place({value!r})"
    names = _NAMED.get(kind)
    if names is not None and isinstance(value, int) and 0 <= value < len(names):
        return f"torch.{names[value]}"
    return repr(value)  # inf and nan are names of the runtime


def returned(operation: Operation) -> str:
    """What a call is assigned to; empty where it returns no tensor that its inputs do not name."""
    taken = set(refs(operation.inputs))
    outputs = operation.outputs
    if all(view in taken for view in refs(outputs)):
        return ""
    targets = [_target(value) for value in outputs]
    return targets[0] if len(targets) == 1 else ", ".join(targets)


def _target(value: Any) -> str:
    if isinstance(value, Ref):
        return f"t[{value.view}]"
    if isinstance(value, list):
        return f"[{', '.join(map(_target, value))}]"
    return "_"
