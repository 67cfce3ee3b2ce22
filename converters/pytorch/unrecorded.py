"""Callers that a host trace names but does not hold, and documents that repeat each other.

A node is written when its operation returns. An operation that is still open when the recording
ends is never written, while all that it called names it. Nor is one that an exception ended, as
activation checkpointing does when it has recomputed enough; what runs behind it on its thread
names it, too.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.codes import among
from chakra_et.columns import UNTIMED, Rows
from chakra_et.recording import HostTrace, Kind
from chakra_et.recording.host_trace import NO_CALLER
from chakra_et.shown import several

REPEATED: Final = "document that repeats node ids of the one before"
_THREAD_ROOT: Final = "|thread]"
_EMPTY: Final = (b"[]", b"[]", b"[]")
_SHARE: Final = 0.1
"""Share of its ids that a document may have in common with those before it."""


def add_unrecorded(host: HostTrace) -> HostTrace:
    """Give every caller that is not in the file a node, under the root of its thread."""
    named = (host.parent != NO_CALLER) & (host.parent != host.id)
    missing = np.flatnonzero(named & ~among(host.parent, host.id))
    if len(missing) == 0:
        return host
    # Of several children, the one that began first tells the thread.
    order = missing[np.argsort(host.id[missing], kind="stable")]
    ids, first = np.unique(host.parent[order], return_index=True)
    children = order[first]
    thread = host.thread[children]
    count = len(ids)

    def longer(column: Rows, value: int = 0) -> Rows:
        return np.append(column, np.full(count, value, np.int64))

    def codes(column: npt.NDArray[np.int32], code: int) -> npt.NDArray[np.int32]:
        return np.append(column, np.full(count, code, np.int32))

    names = [host.names[f"<unrecorded parent {number}>"] for number in ids.tolist()]
    empty = host.texts[_EMPTY]
    return replace(
        host,
        id=np.append(host.id, ids),
        parent=np.append(host.parent, _roots(host, ids, thread)),
        rf_id=longer(host.rf_id),
        fw_parent=longer(host.fw_parent),
        seq_id=longer(host.seq_id, -1),
        scope=longer(host.scope),
        thread=np.append(host.thread, thread),
        fw_thread=longer(host.fw_thread),
        name=np.append(host.name, np.array(names, np.int32)),
        op_schema=codes(host.op_schema, host.op_schemas[""]),
        inputs=codes(host.inputs, empty),
        outputs=codes(host.outputs, empty),
        input_strides=codes(host.input_strides, 0),
        output_strides=codes(host.output_strides, 0),
        start_ns=longer(host.start_ns, UNTIMED),
        duration_ns=longer(host.duration_ns),
        kind=np.append(host.kind, np.full(count, Kind.UNRECORDED, np.uint8)),
        warnings=[
            *host.warnings,
            f"{several(len(missing), 'node was', 'nodes were')} "
            "called by operations that the host trace lacks: an exception ended them, or they had "
            f"not ended when the recording did; {count} nodes named <unrecorded parent N> stand "
            "for these",
        ],
        stubs=count,
    )


def _roots(host: HostTrace, ids: npt.NDArray[np.uint64], thread: Rows) -> npt.NDArray[np.uint64]:
    """The id of the root of each stub's thread; a stub without one is its own root."""
    is_root = np.array([name.endswith(_THREAD_ROOT) for name in host.names], np.bool_)[host.name]
    roots = np.flatnonzero(is_root)
    by_thread = dict(zip(host.thread[roots].tolist(), host.id[roots].tolist(), strict=True))
    root_ids = set(host.id[roots].tolist())
    process = {host.parent[row] for row in roots.tolist()}
    return np.array(
        [
            number if number in process or number in root_ids else by_thread.get(line, number)
            for number, line in zip(ids.tolist(), thread.tolist(), strict=True)
        ],
        np.uint64,
    )


def _are_forked(host: HostTrace) -> bool:
    """Whether some record-function id is of several operations of different names."""
    ids = host.rf_id
    _, first = np.unique(ids, return_index=True)
    name = host.name[first][np.searchsorted(ids[first], ids)]
    return bool(((ids > 0) & (host.name != name)).any())


def drop_repeated_documents(host: HostTrace, starts: list[int]) -> HostTrace:
    """Leave out documents of one file that are recordings of their own: their ids start anew.

    Several cycles of one recording go on counting, and are kept. `starts` tells how many nodes
    stood before each document. So are the documents that forked processes wrote (PyTorch 2.4): they
    have the same record-function ids for other operations.
    """
    if len(starts) < 2 or _are_forked(host):
        return host
    keep = np.ones(len(host), np.bool_)
    borders = [*starts[1:], len(host)]
    seen = set(host.id[: borders[0]].tolist())
    for begin, end in pairwise(borders):
        ids = host.id[begin:end].tolist()
        common = sum(number in seen for number in ids)
        if common <= max(_SHARE * (end - begin), 1):
            seen.update(ids)
        else:
            keep[begin:end] = False
            host.repairs.leave_out(REPEATED, None, end - begin)
    if keep.all():
        return host
    advice = (
        "the file holds more than one recording; the first was kept. The observer was started "
        "again on the same path: give each recording a path of its own"
    )
    kept = host.select(keep)
    kept.warnings.append(advice)
    return kept
