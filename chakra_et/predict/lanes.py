"""Lanes: the threads and streams of a trace, and which of two traces stand for each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.replay.columns import Columns

Codes = npt.NDArray[np.int64]

_COMPARED: Final = 256
"""With more lanes than this on either side, only lanes of equal number are paired."""


@dataclass(frozen=True)
class Lane:
    """The rows of one thread or stream, in the order in which they begin.

    `kind` keeps threads, streams and unnamed work apart; `number` is the thread's or stream's.
    """

    kind: str
    device: int
    number: int
    rows: Rows


def lanes_of(columns: Columns) -> list[Lane]:
    """All lanes of a trace; each row is on one."""
    attributes = columns.trace.nodes.attributes
    on_device = columns.device & attributes.present("stream")
    on_thread = ~columns.device & attributes.present("thread")
    kind = np.where(on_device, 2, np.where(on_thread, 1, 0))
    number = np.where(
        on_device,
        attributes.dense("stream", 0, np.int64),
        np.where(on_thread, attributes.dense("thread", 0, np.int64), 0),
    )
    device = np.where(on_device, attributes.dense("device", 0, np.int64), 0)
    order = np.lexsort((np.arange(len(columns)), columns.begin, number, device, kind))
    keys = np.stack((kind, device, number))[:, order]
    first = np.flatnonzero(np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)))
    if not len(order):
        return []
    names = ("other", "thread", "stream")
    return [
        Lane(names[keys[0, a]], int(keys[1, a]), int(keys[2, a]), order[a:b])
        for a, b in zip(first.tolist(), [*first[1:].tolist(), len(order)], strict=True)
    ]


def paired(
    left: list[Lane], right: list[Lane], left_codes: Codes, right_codes: Codes
) -> list[tuple[Lane, Lane]]:
    """Lanes that stand for each other: those with most operations in common, by the codes of rows.

    Lanes of equal number win where they have as much in common as others: threads and streams keep
    their numbers between steps of a run, and mostly change them between ranks.
    """
    few = max(len(left), len(right)) <= _COMPARED
    held = [Counter(right_codes[lane.rows].tolist()) for lane in right]
    candidates = []
    for i, mine in enumerate(left):
        wanted = Counter(left_codes[mine.rows].tolist())
        for j, theirs in enumerate(right):
            same = (mine.device, mine.number) == (theirs.device, theirs.number)
            if mine.kind == theirs.kind and (few or same):
                common = (wanted & held[j]).total()
                candidates.append((-common, not same, i, j))
    pairs, used_left, used_right = [], set[int](), set[int]()
    for common, _, i, j in sorted(candidates):
        if common and i not in used_left and j not in used_right:
            pairs.append((left[i], right[j]))
            used_left.add(i)
            used_right.add(j)
    return pairs
