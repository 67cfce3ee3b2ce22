"""Operators that only a device has, and what the host calls in their place for the same work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from chakra_et.benchmark.plan import Operation
from chakra_et.benchmark.schema import Schema, parse_schema

_BATCH_NORM_BACKWARD: Final = (
    "aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, "
    "Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, "
    "bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"
)
_OF_HOST: Final = {
    "aten::cudnn_batch_norm_backward": _BATCH_NORM_BACKWARD,
    "aten::miopen_batch_norm_backward": _BATCH_NORM_BACKWARD,
}
"""The host's operator, by the name of the device's."""
_NAMES: Final = {"grad_out": "grad_output", "save_invstd": "save_var", "eps": "epsilon"}
"""Arguments of the host's operator that the device's calls otherwise."""
_VALUES: Final[dict[str, Any]] = {"train": True, "output_mask": [True, True, True]}
"""Those that it does not have."""


def on_the_host(operation: Operation) -> Operation:
    """An operation as the host runs it: itself, but for those that only a device has."""
    text = None if operation.schema is None else _OF_HOST.get(operation.schema.qualified)
    schema = parse_schema(text) if text else None
    if schema is None:
        return operation
    return replace(operation, schema=schema, inputs=_arguments(operation.given, schema))


def _arguments(given: dict[str, Any], host: Schema) -> list[Any]:
    return [
        _VALUES.get(argument.name, given.get(_NAMES.get(argument.name, argument.name)))
        for argument in host.arguments
    ]
