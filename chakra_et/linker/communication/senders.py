"""Who sent the messages that were received from any rank."""

from __future__ import annotations

from collections import defaultdict, deque

from chakra_et.linker.communication.accounts import (
    GUESSED,
    OTHER_RANKS,
    SEND,
    Letter,
    Option,
    Told,
    Unit,
    agreed,
)


def any_sources(units: list[Unit]) -> dict[int, Told]:
    """The senders of messages that were received from any rank, by the identity of the transfer.

    Of those that fit, and that nobody received by name, the first that had been sent: a message
    has been when its receiver took it.
    """
    sent: dict[Letter, dict[int, deque[Unit]]] = defaultdict(lambda: defaultdict(deque))
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
            fits = [option for option in unit.options if option.peer == source]
            found[id(unit.transfers[0])] = agreed(fits, GUESSED if guessed else OTHER_RANKS)
    return found


def _taken(receive: Unit, sent: dict[int, deque[Unit]]) -> int | None:
    """Take the first message that had been sent of those that may be the one; its sender."""
    fits = [
        source
        for source, messages in sent.items()
        if messages and any(_of_one(option, messages[0]) for option in receive.options)
    ]
    source = min(fits, key=lambda source: sent[source][0].transfers[0].end_ns, default=None)
    if source is not None:
        sent[source].popleft()
    return source


def _of_one(option: Option, send: Unit) -> bool:
    """Whether a message may have been sent to where an option of its receiver has it from."""
    return option.peer == send.rank and any(o.group == option.group for o in send.options)


def _when(unit: Unit) -> int:
    """When a message began to be sent, or had been received."""
    only = unit.transfers[0]
    return only.begin_ns if only.kind == SEND else only.end_ns
