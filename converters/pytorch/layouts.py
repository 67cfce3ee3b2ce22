"""The shapes that a node has had in PyTorch's host traces.

Schema strings do not tell them apart, so the keys of the first node do: up to 1.0.1 a node is
flat; since 1.0.2 values sit in `inputs` and `outputs`, the rest in `attrs`, a list of named values
that each release extends. `ts` and `dur`, in microseconds, are what tools have added.
"""

from __future__ import annotations

from typing import Any

import msgspec

_EMPTY = msgspec.Raw(b"[]")
_ABSENT = msgspec.Raw(b"")


class FlatNode(msgspec.Struct, gc=False):
    """Layout A: schema 1.0.0 and 1.0.1."""

    id: int
    name: str
    parent: int = 0
    rf_id: int = 0
    fw_parent: int = 0
    seq_id: int = -1
    scope: int = 0
    tid: int = 0
    fw_tid: int = 0
    op_schema: str = ""
    inputs: msgspec.Raw = _EMPTY
    input_shapes: msgspec.Raw = _EMPTY
    input_types: msgspec.Raw = _EMPTY
    outputs: msgspec.Raw = _EMPTY
    output_shapes: msgspec.Raw = _EMPTY
    output_types: msgspec.Raw = _EMPTY
    ts: msgspec.Raw = _ABSENT
    dur: msgspec.Raw = _ABSENT


class HostIO(msgspec.Struct, gc=False):
    """Inputs or outputs since layout B; `strides` since D."""

    values: msgspec.Raw = _EMPTY
    shapes: msgspec.Raw = _EMPTY
    types: msgspec.Raw = _EMPTY
    strides: msgspec.Raw = _ABSENT


class HostAttr(msgspec.Struct, gc=False):
    """One of the named values since layout B."""

    name: str
    type: str = ""
    value: Any = None


class NestedNode(msgspec.Struct, gc=False):
    """Layouts B to E: schema 1.0.2 and later; `ctrl_deps` is one id, that of the caller."""

    id: int
    name: str
    ctrl_deps: int = 0
    inputs: HostIO = msgspec.field(default_factory=HostIO)
    outputs: HostIO = msgspec.field(default_factory=HostIO)
    attrs: list[HostAttr] = msgspec.field(default_factory=list)
    ts: msgspec.Raw = _ABSENT
    dur: msgspec.Raw = _ABSENT
