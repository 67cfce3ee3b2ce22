"""What nodes of a host trace are, and what those tell that communicate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from chakra_et.columns import Mask
from chakra_et.converters.pytorch.collectives import facts_of
from chakra_et.converters.pytorch.group_nodes import NODE_NAME, groups_in
from chakra_et.converters.pytorch.operators import operators
from chakra_et.converters.pytorch.requests import read_request
from chakra_et.converters.pytorch.tensors import tensors_in
from chakra_et.converters.pytorch.values import decoded, first_shape, tensor_bytes
from chakra_et.recording import HostTrace, Kind, Operators, Sparse, Tensors
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
    communicating = np.flatnonzero(_named(host, COMMUNICATION)).tolist()
    attributes = _attributes_of(host, set(np.flatnonzero(host.kind == Kind.COLLECTIVE).tolist()))
    collectives, requests, operands = [], [], []
    known: dict[int, tuple[list[Any], list[int]]] = {}
    for row in communicating:
        code, name = int(host.inputs[row]), names[host.name[row]]
        if code not in known:
            values = decoded(texts[code][0])
            known[code] = values, list(map(tensor_bytes, values))
        values, sizes = known[code]
        operands.append((row, sizes))
        if name == RECORD:
            collectives.append((row, facts_of(attributes.get(row, {}), values)))
        elif values and name.startswith((REQUEST, FUNCTIONAL)):
            requests.append((row, read_request(name, values)))
    host.collectives, host.requests = Sparse(collectives), Sparse(requests)
    host.operand_bytes = Sparse(operands)
    splits = host.attributes.get(_SPLITS)
    host.all_splits = Sparse() if splits is None else Sparse((row, True) for row in splits.rows)
    return host


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
    """The attributes of some nodes by name."""
    found: dict[int, dict[str, Any]] = {}
    for name, attribute in host.attributes.items() if rows else ():
        for row, value in zip(attribute.rows, attribute.values, strict=True):
            if row in rows:
                found.setdefault(row, {})[name] = value
    return found
