"""What each rank says of its transfers, and the groups and other sides that these may have."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import count
from typing import Final, NamedTuple

import msgspec

from chakra_et.linker.communication.candidates import Names

SEND: Final = "COMM_SEND"
RECV: Final = "COMM_RECV"


OTHER_RANKS: Final = "other ranks"
WAITS: Final = "times of other ranks"
ORDER: Final = "order of calls on other ranks"
BY_THREAD: Final = "thread that asked"
FIRST: Final = "order of first calls"
USUAL: Final = "usual group of a barrier"
ALIKE: Final = "groups of alike messages"
GUESSED: Final = "order in which sends ended"
"""How it is known what a transfer is; the last five are guesses."""


class Told(msgspec.Struct):
    """What other ranks tell of a transfer; None where they do not. `by` says how it is known."""

    group: str | None = None
    peer: int | None = None
    by: str = OTHER_RANKS


class AskedTransfer(msgspec.Struct):
    """A transfer of one rank: its record-function id, and all that its rank knows of it.

    `kind` is the name of its collective or of its node's type, `size_bytes` what all ranks of its
    group bring alike, None where they need not. A message has a `tag`, and the
    `place` of the other side in its group, unless it is received from any. `thread` is that of the
    worker that did it, None for a message or where no profile shows it; `asker` is the one that
    asked, as the host trace numbers it, None where that has no record. `options` are the groups
    that it may be of, `group` and `peer` what was made of them.
    """

    rf_id: int
    kind: str
    size_bytes: int | None
    thread: int | None
    asker: int | None
    options: Names
    place: int | None
    tag: int | None
    begin_ns: int
    end_ns: int
    group: str | None
    peer: int | None


class Account(msgspec.Struct):
    """What one rank says of its transfers and of the groups that it is a member of.

    `machine` is what the profile calls the host, None where it does not.
    """

    rank: int
    groups: dict[str, tuple[int, ...]]
    transfers: list[AskedTransfer] = msgspec.field(default_factory=list)
    machine: str | None = None


class Option(NamedTuple):
    """A group, and the other side of a message in it."""

    group: str
    ranks: tuple[int, ...]
    peer: int | None = None


Letter = tuple[int | None, int | None, int | None]
"""The receiver of a message, its tag and its size."""


class Unit(msgspec.Struct):
    """Transfers of one rank that are of one group: those of a worker thread, or one message.

    `by` says what the options that are left rest on.
    """

    rank: int
    transfers: list[AskedTransfer]
    options: list[Option]
    by: str = OTHER_RANKS
    _collectives: Counter[tuple[object, ...]] | None = None

    @property
    def is_message(self) -> bool:
        return self.transfers[0].kind in (SEND, RECV)

    def letter(self, receiver: int | None) -> Letter:
        """What tells messages to a receiver apart."""
        return receiver, self.transfers[0].tag, self.transfers[0].size_bytes

    def looks(self, option: Option) -> Counter[tuple[object, ...]]:
        """How many transfers of each look there are, if they are of that group."""
        if self.is_message:
            only = self.transfers[0]
            return Counter([(only.kind, option.peer, only.tag, only.size_bytes)])
        if self._collectives is None:
            self._collectives = Counter((each.kind, each.size_bytes) for each in self.transfers)
        return self._collectives

    def counterparts(self, option: Option) -> list[tuple[int, Counter[tuple[object, ...]]]]:
        """What other ranks need to have, if it is of that group."""
        if self.is_message:
            assert option.peer is not None
            only = self.transfers[0]
            other = RECV if only.kind == SEND else SEND
            return [(option.peer, Counter([(other, self.rank, only.tag, only.size_bytes)]))]
        looks = self.looks(option)
        return [(rank, looks) for rank in option.ranks if rank != self.rank]


def units_of(account: Account) -> Iterable[Unit]:
    """A rank's worker threads, and each of its messages."""
    alone = count(-1, -1)
    by_thread: dict[int, list[AskedTransfer]] = defaultdict(list)
    for transfer in account.transfers:
        by_thread[next(alone) if transfer.thread is None else transfer.thread].append(transfer)
    for transfers in by_thread.values():
        options: list[Option] = []
        for name in transfers[0].options:
            options += _of_group(account, name, transfers[0])
        yield Unit(account.rank, transfers, options)


def _of_group(account: Account, name: str, transfer: AskedTransfer) -> Iterable[Option]:
    """The group as an option; of a message, with each other side that it may have there."""
    ranks = account.groups.get(name, ())
    if transfer.kind not in (SEND, RECV):
        return [Option(name, ranks)]
    places = range(len(ranks)) if transfer.place is None else [transfer.place]
    peers = [ranks[place] for place in places if place < len(ranks)]
    return [Option(name, ranks, peer) for peer in peers if peer != account.rank]


def agreed(options: list[Option], by: str) -> Told:
    """What all options that are left have in common."""
    groups = {option.group for option in options}
    peers = {option.peer for option in options}
    return Told(
        groups.pop() if len(groups) == 1 else None,
        peers.pop() if len(peers) == 1 else None,
        by,
    )
