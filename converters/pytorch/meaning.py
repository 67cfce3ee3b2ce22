"""What nodes of a host trace are, and what those tell that communicate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from chakra_et.columns import Mask
from chakra_et.converters.pytorch.collectives import (
    ATTRIBUTES,
    attribute_facts,
    positional_facts,
)
from chakra_et.converters.pytorch.group_nodes import NODE_NAME, groups_in
from chakra_et.converters.pytorch.operators import operators
from chakra_et.converters.pytorch.requests import read_request
from chakra_et.converters.pytorch.tensors import tensors_in
from chakra_et.converters.pytorch.values import decoded, first_shape, tensor_bytes
from chakra_et.recording import Facts, HostAttribute, HostTrace, Kind, Operators, Sparse, Tensors
from chakra_et.recording.libraries import COMMUNICATION, FUNCTIONAL, RECORD, REQUEST

_ROOTS: Final = ("[pytorch|profiler|execution_trace|", "[pytorch|profiler|execution_graph|")
_GENERATED: Final = "kernel_backend"
"""The attribute that only generated kernels have."""
_SPLITS: Final = "in_split_size"


class Texts:
    """How PyTorch's host traces write values, shapes and operators."""

    def tensors(self, texts: Sequence[tuple[bytes, ...]]) -> Tensors:
        """All tensors in the values of inputs or outputs."""
        return tensors_in(texts)

    def operators(self, schemas: list[str]) -> Operators:
        """What operators of these schemas do with their arguments."""
        return operators(schemas)

    def first_shape(self, shapes: bytes) -> list[int] | None:
        """The shape of the first argument, if it is a tensor that has one."""
        return first_shape(shapes)


def read_meaning(host: HostTrace) -> HostTrace:
    """The trace with `kind` and the tables of what nodes tell beside their columns."""
    _set_kinds(host)
    texts, names = host.texts.in_order, host.names.in_order
    listing = np.flatnonzero(host.kind == Kind.GROUPS).tolist()
    host.groups = Sparse((row, groups_in(texts[host.inputs[row]][0])) for row in listing)
    communicating = np.flatnonzero(_named(host, COMMUNICATION))
    attributes = _attributes_of(host, set(np.flatnonzero(host.kind == Kind.COLLECTIVE).tolist()))
    collectives, requests, operands = [], [], []
    known: dict[int, _Inputs] = {}
    inputs, name_codes = host.inputs[communicating].tolist(), host.name[communicating].tolist()
    for row, code, name_code in zip(communicating.tolist(), inputs, name_codes, strict=True):
        told, name = known.get(code), names[name_code]
        if told is None:
            told = known[code] = _Inputs(decoded(texts[code][0]))
        operands.append((row, told.sizes))
        if name == RECORD:
            facts = attribute_facts(attributes.get(row, {}))
            facts.merge(told.facts)
            collectives.append((row, facts))
        elif told.values and name.startswith((REQUEST, FUNCTIONAL)):
            requests.append((row, read_request(name, told.values)))
    host.collectives, host.requests = Sparse(collectives), Sparse(requests)
    host.operand_bytes = Sparse(operands)
    splits = host.attributes.get(_SPLITS)
    host.all_splits = Sparse() if splits is None else Sparse((row, True) for row in splits.rows)
    return host


class _Inputs:
    """Inputs of operations: many have those of another one."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values
        self.sizes = list(map(tensor_bytes, values))
        """The bytes of the tensors in each."""

    @cached_property
    def facts(self) -> Facts | None:
        """What they tell where they are those of a collective's record."""
        return positional_facts(self.values, self.sizes)


def _set_kinds(host: HostTrace) -> None:
    generated = host.attributes.get(_GENERATED)
    if generated is not None:
        host.kind[generated.rows] = Kind.GENERATED
    for name, kind in ((RECORD, Kind.COLLECTIVE), (NODE_NAME, Kind.GROUPS)):
        if name in host.names:
            host.kind[host.name == host.names[name]] = kind
    roots = [name.startswith(_ROOTS) for name in host.names]
    if len(host):
        host.kind[np.array(roots, np.bool_)[host.name]] = Kind.ROOT


def _named(host: HostTrace, pattern: re.Pattern[str]) -> Mask:
    """Which nodes have a name that begins with a pattern."""
    if len(host) == 0:
        return np.zeros(0, np.bool_)
    chosen: Mask = np.array([pattern.match(name) is not None for name in host.names])[host.name]
    return chosen


def _attributes_of(host: HostTrace, rows: set[int]) -> dict[int, dict[str, Any]]:
    """The attributes of some nodes by name, those that facts are read from."""
    found: dict[int, dict[str, Any]] = {}
    for name in ATTRIBUTES if rows else ():
        attribute = host.attributes.get(name, HostAttribute(""))
        for row, value in zip(attribute.rows, attribute.values, strict=True):
            if row in rows:
                found.setdefault(row, {})[name] = value
    return found
