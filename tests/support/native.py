"""The C interface through ctypes, with the calls of the Python feeder, to compare the two."""

from __future__ import annotations

import ctypes as c
import os
from pathlib import Path
from typing import Any

from chakra_et.feeder import Code, Counts, FeederError, Next, State
from chakra_et.model import EdgeKind

_FAULTS = {"fail": 0, "drop": 1, "wait": 2}


class _Error(c.Structure):
    _fields_ = (
        ("code", c.c_int32), ("node", c.c_uint64), ("other", c.c_uint64),
        ("offset", c.c_uint64), ("message", c.c_char * 232),
    )  # fmt: skip


class _Options(c.Structure):
    _fields_ = (
        ("gate", c.c_uint32), ("order", c.c_uint8), ("missing_parent", c.c_uint8),
        ("self_edge", c.c_uint8), ("skip_metadata", c.c_uint8), ("strict_window", c.c_uint8),
        ("window", c.c_uint64), ("repeat", c.c_uint64), ("max_record", c.c_uint64),
        ("max_input", c.c_uint64),
    )  # fmt: skip


class NativeNode(c.Structure):
    """A node as C sees it."""

    _fields_ = (
        ("id", c.c_uint64), ("start_ns", c.c_int64), ("duration_ns", c.c_int64),
        ("duration_micros", c.c_uint64), ("type", c.c_uint32), ("has_start", c.c_uint8),
        ("has_duration", c.c_uint8), ("is_cpu_op", c.c_uint8), ("has_is_cpu_op", c.c_uint8),
        ("name", c.c_void_p), ("name_size", c.c_size_t),
        ("message", c.c_void_p), ("message_size", c.c_size_t),
    )  # fmt: skip

    def text(self) -> bytes:
        """The name."""
        return c.string_at(self.name, self.name_size)

    def record(self) -> bytes:
        """The whole node, as it stands in its file."""
        return c.string_at(self.message, self.message_size)


class _Counts(c.Structure):
    _fields_ = (
        *((name, c.c_uint64) for name in ("waiting", "ready", "taken", "done", "held", "peak")),
        ("all_read", c.c_uint32),
    )


class NativeFeeder:
    """A feeder of the C++ library over bytes, or over what lies at a path."""

    def __init__(self, lib: Any, source: bytes | Path, **options: Any) -> None:
        self._lib = lib
        self._data = source
        self._room = len(source) if isinstance(source, bytes) else 0
        chosen = _Options()
        lib.chakra_et_options_init(c.byref(chosen))
        for name, value in options.items():
            if name == "gate":
                value = sum(1 << int(kind) for kind in value) | 1 << len(EdgeKind)
            elif name == "order":
                value = int(value == "start")
            setattr(chosen, name, _FAULTS.get(value, value) if isinstance(value, str) else value)
        self._feeder = c.c_void_p()
        error = _Error()
        rest = c.byref(chosen), c.byref(self._feeder), c.byref(error)
        if isinstance(source, bytes):
            lib.chakra_et_open_bytes(source, c.c_size_t(len(source)), *rest)
        else:
            lib.chakra_et_open(os.fsencode(source), *rest)
        _check(error)

    def __del__(self) -> None:
        if self._feeder:
            self._lib.chakra_et_close(self._feeder)

    def next(self) -> tuple[Next, NativeNode | None]:
        node, error = NativeNode(), _Error()
        answer = Next(self._lib.chakra_et_take_next(self._feeder, c.byref(node), c.byref(error)))
        if answer is Next.FAILED:
            _check(error)
        return answer, node if answer is Next.NODE else None

    def _call(self, name: str, node_id: int) -> None:
        error = _Error()
        getattr(self._lib, name)(self._feeder, c.c_uint64(node_id), c.byref(error))
        _check(error)

    def take(self, node_id: int) -> None:
        self._call("chakra_et_take", node_id)

    def done(self, node_id: int) -> None:
        self._call("chakra_et_done", node_id)

    def push_back(self, node_id: int) -> None:
        self._call("chakra_et_push_back", node_id)

    def ready(self) -> list[int]:
        ids = (c.c_uint64 * max(1, self._room))()
        count = self._lib.chakra_et_ready(self._feeder, ids, c.c_size_t(self._room))
        return list(ids[:count])

    def state(self, node_id: int) -> State:
        return State(self._lib.chakra_et_state(self._feeder, c.c_uint64(node_id)))

    def node(self, node_id: int) -> NativeNode | None:
        node = NativeNode()
        found = self._lib.chakra_et_get_node(self._feeder, c.c_uint64(node_id), c.byref(node))
        return node if found else None

    def children(self, node_id: int) -> list[int]:
        ids = (c.c_uint64 * max(1, self._room))()
        count = self._lib.chakra_et_children(
            self._feeder, c.c_uint64(node_id), ids, c.c_size_t(self._room)
        )
        return list(ids[:count])

    def reset(self) -> None:
        error = _Error()
        self._lib.chakra_et_reset(self._feeder, c.byref(error))
        _check(error)

    @property
    def is_finished(self) -> bool:
        return bool(self._lib.chakra_et_is_finished(self._feeder))

    def counts(self) -> Counts:
        found = _Counts()
        self._lib.chakra_et_count(self._feeder, c.byref(found))
        numbers = [getattr(found, name) for name, *_ in _Counts._fields_]
        return Counts(*numbers[:6], bool(numbers[6]))

    def blocked(self, limit: int = 20) -> str:
        text = c.create_string_buffer(1 << 16)
        self._lib.chakra_et_blocked(self._feeder, c.c_size_t(limit), text, c.c_size_t(1 << 16))
        return text.value.decode("utf-8", "replace")


def _check(error: _Error) -> None:
    if error.code:
        raise FeederError(
            Code(error.code), error.message.decode(), node=error.node, other=error.other,
            offset=error.offset,
        )  # fmt: skip


def load(path: str) -> Any:
    """The shared library, with the types of what its functions return."""
    lib = c.CDLL(path)
    for name in ("ready", "children", "parents", "blocked", "take_many", "run"):
        getattr(lib, f"chakra_et_{name}").restype = c.c_size_t
    lib.chakra_et_close.restype = None
    lib.chakra_et_close.argtypes = [c.c_void_p]
    return lib
