"""Sends and receives of all ranks, paired as a network pairs them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from chakra_et.codes import codes
from chakra_et.columns import Mask, Rows
from chakra_et.definitions import NodeType
from chakra_et.validators.sequences import issue_order
from chakra_et.validators.view import ABSENT, RunView, TraceView


class Message(NamedTuple):
    """One side of a message."""

    rank: int
    row: int
    is_send: bool
    src: int
    dst: int
    tag: int
    size: int

    @property
    def text(self) -> str:
        """The message for people."""
        side = "send" if self.is_send else "receive"
        return f"{side} from rank {self.src} to rank {self.dst} with tag {self.tag}"


@dataclass
class Pairing:
    """What is left when every send has found its receive."""

    unmatched: list[Message] = field(default_factory=list)
    unequal: list[tuple[Message, Message]] = field(default_factory=list)


def pair_messages(run: RunView) -> Pairing:
    """Pair by source, destination, tag and size, and what is left by all but size, in order.

    Messages whose peer is not among the traces, or not told, are left alone.
    """
    sides = [_side(run, send=True), _side(run, send=False)]
    left: list[list[Message]] = []
    keys = [_numbered(side[:, 2:]) for side in sides]
    for mine, other, side, send in ((0, 1, sides[0], True), (1, 0, sides[1], False)):
        alone = ~_contained(keys[mine], keys[other])
        left.append(
            [
                Message(rank, row, send, src, dst, tag, size)
                for rank, row, src, dst, tag, size in side[alone].tolist()
            ]
        )
    pairing = Pairing()
    waiting: dict[tuple[int, int, int], list[Message]] = {}
    for receive in left[1]:
        waiting.setdefault((receive.src, receive.dst, receive.tag), []).append(receive)
    for send_side in left[0]:
        same = waiting.get((send_side.src, send_side.dst, send_side.tag))
        if same:
            receive = same.pop(0)
            # A side without a size is ET211's affair.
            if send_side.size and receive.size:
                pairing.unequal.append((send_side, receive))
        else:
            pairing.unmatched.append(send_side)
    pairing.unmatched += [message for rest in waiting.values() for message in rest]
    return pairing


def _side(run: RunView, *, send: bool) -> npt.NDArray[np.int64]:
    """Rank, row, source, destination, tag and size of each send or receive, int64[n, 6]."""
    parts = [_of_rank(rank, view, send=send) for rank, view in run.views.items()]
    whole = np.concatenate(parts) if parts else np.zeros((0, 6), np.int64)
    peer = whole[:, 3] if send else whole[:, 2]
    return whole[np.isin(peer, list(run.views))]


def _of_rank(rank: int, view: TraceView, *, send: bool) -> npt.NDArray[np.int64]:
    rows = issue_order(view, view.of_type(NodeType.COMM_SEND if send else NodeType.COMM_RECV))
    own = np.full(len(rows), rank, np.int64)
    peer = view.integers("comm_dst" if send else "comm_src")[rows]
    tag, size = view.integers("comm_tag")[rows], view.integers("comm_size")[rows]
    tag, size = (np.where(column == ABSENT, 0, column) for column in (tag, size))
    src, dst = (own, peer) if send else (peer, own)
    return np.stack([own, rows, src, dst, tag, size], axis=1)


def _numbered(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Keys with a number that tells equal ones apart, in order."""
    if len(keys) == 0:
        return np.zeros((0, keys.shape[1] + 1), np.int64)
    order = np.lexsort((np.arange(len(keys)), *keys.T))
    sorted_keys = keys[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = (sorted_keys[1:] != sorted_keys[:-1]).any(1)
    first = np.maximum.accumulate(np.where(new, np.arange(len(keys)), 0))
    number = np.empty(len(keys), np.int64)
    number[order] = np.arange(len(keys)) - first
    return np.column_stack([keys, number])


def _contained(mine: npt.NDArray[np.int64], others: npt.NDArray[np.int64]) -> Mask:
    """Which rows of `mine` stand in `others` too."""
    both = np.concatenate([mine, others])
    code = codes(*both.T)
    return np.isin(code[: len(mine)], code[len(mine) :])


def matched_messages(run: RunView) -> dict[tuple[int, int], tuple[Rows, Rows]]:
    """Rows of sends and of their receives by rank of either, where all but the size fits."""
    sends, receives = _side(run, send=True), _side(run, send=False)
    keys = [_numbered(side[:, 2:5]) for side in (sends, receives)]
    code = codes(*np.concatenate(keys).T)
    _, mine, theirs = np.intersect1d(
        code[: len(sends)], code[len(sends) :], assume_unique=True, return_indices=True
    )
    found: dict[tuple[int, int], tuple[Rows, Rows]] = {}
    pairs = np.stack([sends[mine, 0], receives[theirs, 0]], axis=1)
    for pair in np.unique(pairs, axis=0).tolist():
        of_pair = (pairs == pair).all(1)
        found[pair[0], pair[1]] = sends[mine[of_pair], 1], receives[theirs[of_pair], 1]
    return found
