"""Memory that tensors hold, from the storages in the host trace's inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chakra_et.converters.pytorch.tensors import tensors_in
from chakra_et.model import UNKNOWN_NS, Trace
from chakra_et.recording import Tensors
from chakra_et.tables.table import Table, texts


def memory_table(traces: Mapping[int, Trace]) -> Table:
    """The most bytes of storages in use at once, by rank and device, and when that was.

    A storage counts from the first to the last node that names it, by the order of starts: that
    is a lower bound of what was allocated. Empty where no node tells of storages (profiles alone).
    `peak_node` is the id of the node at whose start the peak is reached.
    """
    rows = [row for rank, trace in traces.items() for row in _of_rank(rank, trace)]
    names = ("rank", "device", "storages", "all_bytes", "peak_bytes", "peak_node")
    columns = {
        name: texts([row[i] for row in rows])
        if name == "device"
        else np.array([row[i] for row in rows], np.int64)
        for i, name in enumerate(names)
    }
    return Table("memory", columns, "a lower bound: storages that operators name").by("peak_bytes")


def _of_rank(rank: int, trace: Trace) -> list[tuple[int, str, int, int, int, int]]:
    nodes = trace.nodes
    found = tensors_in(nodes.texts)
    if len(found.storage) == 0:
        return []
    # Order of starts, and of rows where no time is known.
    start = np.where(nodes.start_ns == UNKNOWN_NS, 0, nodes.start_ns)
    moment = np.empty(len(nodes), np.int64)
    order = np.lexsort((np.arange(len(nodes)), start))
    moment[order] = np.arange(len(nodes))
    texts_of = np.concatenate((nodes.input_code, nodes.output_code))
    moments = np.concatenate((moment, moment))
    used = texts_of >= 0
    first, last = _first_and_last(found, texts_of[used], moments[used], len(nodes))
    result = []
    for code, device in enumerate(found.devices):
        # Storages of empty tensors have no device and no bytes.
        mine = (found.device == code) & (last >= 0) & (found.end > 0)
        if mine.any() and device:
            result.append((rank, device, *_peak(found, mine, first, last, nodes.id[order])))
    return result


def _first_and_last(
    found: Tensors, text: np.ndarray, moment: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """For each tensor the first and the last moment at which a node names it."""
    first = np.full(len(found.offsets) - 1, count, np.int64)
    last = np.full(len(found.offsets) - 1, -1, np.int64)
    np.minimum.at(first, text, moment)
    np.maximum.at(last, text, moment)
    of_text = np.repeat(np.arange(len(first)), np.diff(found.offsets))
    return first[of_text], last[of_text]


def _peak(
    found: Tensors, mine: np.ndarray, first: np.ndarray, last: np.ndarray, ids: np.ndarray
) -> tuple[int, int, int, int]:
    """Number of storages, their bytes, the peak, and the id of the node where it is reached."""
    storage, place = np.unique(found.storage[mine], return_inverse=True)
    size = np.zeros(len(storage), np.int64)
    begin = np.full(len(storage), np.iinfo(np.int64).max)
    end = np.full(len(storage), -1, np.int64)
    np.maximum.at(size, place, found.end[mine])
    np.minimum.at(begin, place, first[mine])
    np.maximum.at(end, place, last[mine])
    change = np.zeros(len(ids) + 1, np.int64)
    np.add.at(change, begin, size)
    np.add.at(change, end + 1, -size)
    level = np.cumsum(change)[:-1]
    peak = int(level.argmax())
    return len(storage), int(size.sum()), int(level[peak]), int(ids[peak])
