"""Which process group, or which other side, a transfer has: what the ranks of a run tell together.

Recordings of gloo name no process group. What a rank alone cannot decide (`candidates`), its
counterparts do: a collective needs one of its type and size on every other member of its group, a
message one of its tag and size on the other side. What fits worse than something else is ruled
out, until nothing changes any more.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final, NamedTuple

from chakra_et.linker.candidates import Names, in_order_of_threads

SEND: Final = "COMM_SEND"
RECV: Final = "COMM_RECV"


@dataclass
class Told:
    """What other ranks tell of a transfer; None where they do not.

    `guessed` marks a peer that times tell: of several messages that fit, the first to be sent is
    taken to have been received first.
    """

    group: str | None = None
    peer: int | None = None
    guessed: bool = False


@dataclass
class AskedTransfer:
    """A transfer of one rank: its record-function id, and all that its rank knows of it.

    `kind` is the name of its collective or of its node's type, `size_bytes` what all ranks of its
    group bring alike, None where they need not. A message has a `tag`, and the
    `place` of the other side in its group, unless it is received from any. `thread` is that of the
    worker that did it, None for a message. `options` are the groups that it may be of, `group` and
    `peer` what was made of them.
    """

    rf_id: int
    kind: str
    size_bytes: int | None
    thread: int | None
    options: Names
    place: int | None
    tag: int | None
    begin_ns: int
    end_ns: int
    group: str | None
    peer: int | None


@dataclass
class Account:
    """What one rank says of its transfers and of the groups that it is a member of."""

    rank: int
    groups: dict[str, tuple[int, ...]]
    transfers: list[AskedTransfer] = field(default_factory=list)


class _Option(NamedTuple):
    """A group, and the other side of a message in it."""

    group: str
    ranks: tuple[int, ...]
    peer: int | None = None


_Key = tuple[int, str, tuple[int, ...], tuple[object, ...]]
"""A rank, a group, and what a transfer of it looks like."""


@dataclass
class _Unit:
    """Transfers of one rank that are of one group: those of a worker thread, or one message."""

    rank: int
    transfers: list[AskedTransfer]
    options: list[_Option]
    _collectives: Counter[tuple[object, ...]] | None = None

    @property
    def is_message(self) -> bool:
        return self.transfers[0].kind in (SEND, RECV)

    def letter(self, receiver: int | None) -> _Letter:
        """What tells messages to a receiver apart."""
        return receiver, self.transfers[0].tag, self.transfers[0].size_bytes

    def looks(self, option: _Option) -> Counter[tuple[object, ...]]:
        """How many transfers of each look there are, if they are of that group."""
        if self.is_message:
            only = self.transfers[0]
            return Counter([(only.kind, option.peer, only.tag, only.size_bytes)])
        if self._collectives is None:
            self._collectives = Counter((each.kind, each.size_bytes) for each in self.transfers)
        return self._collectives

    def counterparts(self, option: _Option) -> list[tuple[int, Counter[tuple[object, ...]]]]:
        """What other ranks need to have, if it is of that group."""
        if self.is_message:
            assert option.peer is not None
            only = self.transfers[0]
            other = RECV if only.kind == SEND else SEND
            return [(option.peer, Counter([(other, self.rank, only.tag, only.size_bytes)]))]
        looks = self.looks(option)
        return [(rank, looks) for rank in option.ranks if rank != self.rank]


def settle(accounts: Sequence[Account]) -> dict[int, dict[int, Told]]:
    """By rank and record-function id, what other ranks tell that the rank itself did not know."""
    if len(accounts) < 2:
        return {}
    units = [unit for account in accounts for unit in _units(account)]
    ranks = {account.rank for account in accounts}
    _rule_out(units, ranks)
    for account in accounts:
        _order_threads(account, [unit for unit in units if unit.rank == account.rank])
    _rule_out(units, ranks)
    for unit in units:
        _prefer_everyone(unit)
    sources = _any_sources(units)
    news: dict[int, dict[int, Told]] = {}
    for unit in units:
        for transfer in unit.transfers:
            told = sources.get(id(transfer)) or _agreed(unit.options)
            if transfer.rf_id and (told.group or transfer.group, told.peer or transfer.peer) != (
                transfer.group,
                transfer.peer,
            ):
                news.setdefault(unit.rank, {})[transfer.rf_id] = told
    return news


def _units(account: Account) -> Iterable[_Unit]:
    alone = count(-1, -1)
    by_thread: dict[int, list[AskedTransfer]] = defaultdict(list)
    for transfer in account.transfers:
        by_thread[next(alone) if transfer.thread is None else transfer.thread].append(transfer)
    for transfers in by_thread.values():
        options: list[_Option] = []
        for name in transfers[0].options:
            options += _of_group(account, name, transfers[0])
        yield _Unit(account.rank, transfers, options)


def _of_group(account: Account, name: str, transfer: AskedTransfer) -> Iterable[_Option]:
    """The group as an option; of a message, with each other side that it may have there."""
    ranks = account.groups.get(name, ())
    if transfer.kind not in (SEND, RECV):
        return [_Option(name, ranks)]
    places = range(len(ranks)) if transfer.place is None else [transfer.place]
    peers = [ranks[place] for place in places if place < len(ranks)]
    return [_Option(name, ranks, peer) for peer in peers if peer != account.rank]


def _rule_out(units: list[_Unit], ranks: set[int]) -> None:
    """Keep of each unit the options that most of it has counterparts for, until all are kept."""
    changed = True
    while changed:
        changed = False
        there = _present(units)
        for unit in units:
            if len(unit.options) > 1:
                fits = [_matched(unit, option, there, ranks) for option in unit.options]
                kept = [o for o, fit in zip(unit.options, fits, strict=True) if fit == max(fits)]
                changed |= len(kept) < len(unit.options)
                unit.options = kept


def _present(units: list[_Unit]) -> Counter[_Key]:
    """How many transfers of each look each rank may have in each group."""
    there: Counter[_Key] = Counter()
    for unit in units:
        for option in unit.options:
            for look, number in unit.looks(option).items():
                there[unit.rank, option.group, option.ranks, look] += number
    return there


def _matched(unit: _Unit, option: _Option, there: Mapping[_Key, int], ranks: set[int]) -> int:
    """How many of a unit's transfers have a counterpart on every other rank that was recorded."""
    matched = len(unit.transfers)
    for rank, looks in unit.counterparts(option):
        if rank in ranks:
            found = sum(
                min(number, there[rank, option.group, option.ranks, look])
                for look, number in looks.items()
            )
            matched = min(matched, found)
    return matched


def _order_threads(account: Account, units: list[_Unit]) -> None:
    """Rule out what the order of threads does, which are made as the groups are."""
    of_thread = {unit.transfers[0].thread: unit for unit in units if not unit.is_message}
    options = {
        thread: tuple(option.group for option in unit.options)
        for thread, unit in of_thread.items()
        if thread is not None
    }
    for thread, left in in_order_of_threads(options, tuple(account.groups)).items():
        unit = of_thread[thread]
        unit.options = [option for option in unit.options if option.group in left]


def _prefer_everyone(unit: _Unit) -> None:
    """Barriers that may be of all ranks, by all that is told, are taken to be: most are."""
    if all(transfer.kind == "BARRIER" for transfer in unit.transfers):
        most = max((len(option.ranks) for option in unit.options), default=0)
        everyone = [option for option in unit.options if len(option.ranks) == most]
        unit.options = everyone if len(everyone) == 1 else unit.options


def _agreed(options: list[_Option]) -> Told:
    """What all options that are left have in common."""
    groups = {option.group for option in options}
    peers = {option.peer for option in options}
    return Told(
        groups.pop() if len(groups) == 1 else None, peers.pop() if len(peers) == 1 else None
    )


def _any_sources(units: list[_Unit]) -> dict[int, Told]:
    """The senders of messages that were received from any rank, by the identity of the transfer.

    Of those that fit, the first that was sent and that nobody received by name.
    """
    sent: dict[_Letter, dict[int, deque[_Unit]]] = defaultdict(lambda: defaultdict(deque))
    named, wanted = [], []
    for unit in sorted((unit for unit in units if unit.is_message), key=_when):
        peers = {option.peer for option in unit.options}
        if unit.transfers[0].kind == SEND:
            for peer in peers if len(peers) == 1 else ():
                sent[unit.letter(peer)][unit.rank].append(unit)
        elif len(peers) == 1:
            named.append(unit)
        elif peers:
            wanted.append(unit)
    for unit in named:
        _taken(unit, sent[unit.letter(unit.rank)])
    found: dict[int, Told] = {}
    for unit in wanted:
        waiting = sent[unit.letter(unit.rank)]
        guessed = sum(map(bool, waiting.values())) > 1
        source = _taken(unit, waiting)
        if source is not None:
            told = _agreed([option for option in unit.options if option.peer == source])
            found[id(unit.transfers[0])] = Told(told.group, source, guessed)
    return found


_Letter = tuple[int | None, int | None, int | None]
"""The receiver of a message, its tag and its size."""


def _taken(receive: _Unit, sent: dict[int, deque[_Unit]]) -> int | None:
    """Take the first message that was sent of those that may have been received; its sender."""
    fits = [
        source
        for source, messages in sent.items()
        if messages and any(_of_one(option, messages[0]) for option in receive.options)
    ]
    source = min(fits, key=lambda source: sent[source][0].transfers[0].begin_ns, default=None)
    if source is not None:
        sent[source].popleft()
    return source


def _of_one(option: _Option, send: _Unit) -> bool:
    """Whether a message may have been sent to where an option of its receiver has it from."""
    return option.peer == send.rank and any(o.group == option.group for o in send.options)


def _when(unit: _Unit) -> int:
    """When a message began to be sent, or had been received."""
    only = unit.transfers[0]
    return only.begin_ns if only.kind == SEND else only.end_ns
