"""The nodes of a linked trace, as they stand in the file."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from chakra_et.converters.pytorch.host_columns import FlatColumns, NestedColumns
from chakra_et.converters.pytorch.layouts import FlatNode, NestedNode
from chakra_et.io.repairs import Repairs
from chakra_et.recording import NO_ID

ABSENT = msgspec.Raw(b"")


class LinkedNested(NestedNode, gc=False):
    """A node of layouts B to E; `cat` stands on device nodes only. Times are microseconds."""

    inclusive_dur: msgspec.Raw = ABSENT
    cat: str | None = None
    stream: Any = None
    pg_name: Any = None
    sync_dep: Any = None
    inter_thread_dep: Any = None


class LinkedFlat(FlatNode, gc=False):
    """A node of layout A; only device nodes have `ctrl_deps`."""

    ctrl_deps: Any = None
    inclusive_dur: msgspec.Raw = ABSENT
    cat: str | None = None
    stream: Any = None
    pg_name: Any = None
    sync_dep: Any = None
    inter_thread_dep: Any = None


N = TypeVar("N", LinkedNested, LinkedFlat)


class LinkedColumns(Generic[N]):
    """Nodes as they come in: the host's columns, and the device nodes as they are.

    `timed` holds start and duration of host nodes by id, `synced` the pairs of device node and host
    node of waits.
    """

    def __init__(self, host: NestedColumns | FlatColumns, repairs: Repairs) -> None:
        self.host = host
        self.repairs = repairs
        self.timed: dict[int, tuple[bytes, bytes]] = {}
        self.work: list[N] = []
        self.synced: list[tuple[Any, int]] = []
        self.handed_over = 0

    def add(self, piece: list[N], /) -> None:
        """Take in some nodes."""
        host = [node for node in piece if node.cat is None]
        self.host.add(host)  # type: ignore[arg-type]
        self.work += [node for node in piece if node.cat is not None]
        self.timed |= {
            node.id: (bytes(node.ts), bytes(node.inclusive_dur))
            for node in host
            if bytes(node.ts) not in (b"", b"null")
        }
        for node in piece:
            self.handed_over += node.inter_thread_dep is not None
            if isinstance(node.sync_dep, list):
                self.synced += [(source, node.id) for source in node.sync_dep]


def whole(value: Any) -> int:
    """An id, or a number that is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else NO_ID
