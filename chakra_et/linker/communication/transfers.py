"""Transfers of backends on the host: what the calls that asked for them, and other ranks, add."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from chakra_et.columns import NO_ROW
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.linker.communication.accounts import GUESSED, Account, AskedTransfer, Told
from chakra_et.linker.communication.candidates import Names, Transfer, in_order_of_threads, narrow
from chakra_et.linker.communication.operations_around import told_by_request
from chakra_et.linker.communication.process_groups import GroupTable
from chakra_et.linker.communication.views import Views
from chakra_et.linker.communication.workers import Workers
from chakra_et.recording import Facts, Request
from chakra_et.recording.libraries import operation
from chakra_et.shown import several

_OUTER: Final = 4
"""How far around the operation that asked one is looked for that names the process group."""


class Transfers(msgspec.Struct):
    """What could not be decided about transfers.

    `open_groups` are the groups that one may be of, by row, where nothing tells which. `account` is
    what other ranks may need to know; None where there is but one group. `guessed` counts messages
    whose other side is told by times alone.
    """

    open_groups: dict[int, Names] = msgspec.field(default_factory=dict)
    account: Account | None = None
    guessed: int = 0

    def warnings(self) -> list[str]:
        """What a person should know of them."""
        told = []
        if self.open_groups:
            names = sorted({name for options in self.open_groups.values() for name in options})
            told.append(
                f"{several(len(self.open_groups), 'collective is', 'collectives are')} "
                "of one of the process groups "
                f"{', '.join(names)}; neither their threads nor the calls that asked for them tell "
                "which, nor do other ranks where they are converted together"
            )
        if self.guessed:
            told.append(
                f"{several(self.guessed, 'message', 'messages')} "
                "received from any rank could be of several senders; "
                "they were taken in the order in which the sends had ended"
            )
        return told


def add_requests(views: Views, workers: Workers, found: dict[int, Facts]) -> dict[int, Transfer]:
    """The transfers among communications, with what the operations tell that asked for them."""
    requests = workers.requests()
    threads = _worker_threads(views, workers)
    transfers = {}
    for row in views.host_spans:
        request, name = _request(views, requests.get(row, NO_ROW))
        facts = _merged(request.facts.copy(), found[row])
        if name is not None:
            facts.merge(Facts(group=name, sources=["name in the call"]))
        found[row] = facts
        transfers[row] = Transfer(facts, request.group_size, request.root, threads.get(row))
    return transfers


def _worker_threads(views: Views, workers: Workers) -> dict[int, int]:
    """The worker thread of each transfer that does not run beside the thread that asked."""
    if views.device is None:
        return {}
    rows = workers.transfers
    tids = views.device.tid[views.table.record[rows]].tolist()
    beside = set(views.table.beside.tolist())
    return {row: tid for row, tid in zip(rows.tolist(), tids, strict=True) if row not in beside}


def _request(views: Views, row: int) -> tuple[Request, str | None]:
    """What the operation that asked tells, and the process group that one around it names."""
    if row == NO_ROW:
        return Request(Facts()), None
    told, name = views.request(row), None
    request = Request(told_by_request(views, row)) if told is None else told
    for _ in range(_OUTER):
        if row == NO_ROW or name is not None:
            break
        around = views.request(row)
        name = None if around is None else around.group
        row = int(views.table.caller[row])
    return request, name


def _merged(request: Facts, span: Facts) -> Facts:
    """Both accounts of a transfer; one that the call tells more of is what the call says.

    A part of what a call asks for has the backend's size. It is what the backend says, too, but
    for a part of a reduce-scatter, for which a backend may reduce everything on every rank.
    """
    whole = request.size_bytes is not None and span.size_bytes in (None, 0, request.size_bytes)
    if whole:
        span.size_bytes = None
    else:
        request.size_bytes = None
        if request.kind is not CollectiveType.REDUCE_SCATTER:
            request.name = None
            span.merge(request)
            return span
    request.merge(span)
    return request


def decide_groups(
    transfers: dict[int, Transfer],
    views: Views,
    groups: GroupTable,
    told: Mapping[int, Mapping[int, Told]],
) -> Transfers:
    """Set groups and other sides of transfers, as far as they are told.

    `told` is what other ranks told, by rank and record-function id.
    """
    if len(groups.groups) < 2 and not any(map(_is_message, transfers.values())):
        return Transfers()
    narrow(transfers.values(), groups)
    ids = {row: views.rf_id(row) for row in transfers}
    account = _account(transfers, views, groups, ids)
    if account is not None and views.device is not None:
        account.machine = views.device.machine
    _by_thread(transfers, groups)
    news = told.get(-1 if groups.rank is None else groups.rank, {})
    result = Transfers(account=account)
    for row, transfer in transfers.items():
        _decide(transfer, groups, news.get(ids[row]))
        named = transfer.facts.group is not None or _is_message(transfer)
        if not named and not _of_everyone(transfer, groups):
            result.open_groups[row] = transfer.options
    result.guessed = sum(item.by == GUESSED for item in news.values())
    if account is not None:
        for item, transfer in zip(account.transfers, transfers.values(), strict=True):
            item.group, item.peer = transfer.facts.group, transfer.facts.peer
    return result


def _is_message(transfer: Transfer) -> bool:
    # Numbers of collectives and of nodes' types overlap, so that equality does not do.
    return isinstance(operation(transfer.facts.name or ""), NodeType)


def _of_everyone(transfer: Transfer, groups: GroupTable) -> bool:
    """Whether all groups that a transfer may be of have all ranks: then no name says it right."""
    sizes = {len(groups.groups[name].ranks) for name in transfer.options}
    return groups.world_size is not None and sizes == {groups.world_size}


def _decide(transfer: Transfer, groups: GroupTable, told: Told | None) -> None:
    """The group and the other side of a transfer: what other ranks say, else what is left."""
    facts = transfer.facts
    if told is not None and told.group is not None:
        transfer.options = (told.group,)
    if told is not None:
        facts.peer = facts.peer if told.peer is None else told.peer
        facts.sources.append(told.by)
    if len(transfer.options) == 1 and facts.group is None:
        (facts.group,) = transfer.options
    place = facts.peer_in_group
    if facts.peer is None and place is not None:
        known = [groups.groups[name].ranks for name in transfer.options]
        peers = {ranks[place] if place < len(ranks) else None for ranks in known}
        facts.peer = peers.pop() if len(peers) == 1 else None


def _by_thread(transfers: dict[int, Transfer], groups: GroupTable) -> None:
    """Rule out groups by the order in which threads were made."""
    options = {t.thread: t.options for t in transfers.values() if t.thread is not None}
    left = in_order_of_threads(options, tuple(groups.groups))
    for transfer in transfers.values():
        if transfer.thread is not None:
            transfer.options = left[transfer.thread]


def _account(
    transfers: dict[int, Transfer], views: Views, groups: GroupTable, ids: Mapping[int, int]
) -> Account | None:
    """What other ranks need to know, before threads and they decide."""
    if groups.rank is None:
        return None
    members = {name: group.ranks for name, group in groups.groups.items()}
    table = views.table
    return Account(
        groups.rank,
        members,
        [
            AskedTransfer(
                rf_id=ids[row],
                kind=_kind(transfer.facts),
                size_bytes=_size_for_each(transfer),
                thread=transfer.thread,
                asker=views.asking_thread(row),
                options=transfer.options,
                place=transfer.facts.peer_in_group,
                tag=transfer.facts.tag,
                begin_ns=int(table.start_ns[row]),
                end_ns=int(table.end_ns[row]),
                group=None,
                peer=None,
            )
            for row, transfer in transfers.items()
        ],
    )


def _size_for_each(transfer: Transfer) -> int | None:
    """The bytes that are equal on all ranks; None where each may have its own number."""
    kind, size = operation(transfer.facts.name or ""), transfer.facts.size_bytes
    if transfer.group_size is None or size is None:
        return size
    if kind is CollectiveType.ALL_TO_ALL:  # its split sizes were given
        return None
    return size // transfer.group_size if kind is CollectiveType.SCATTER else size


def _kind(facts: Facts) -> str:
    kind = operation(facts.name or "")
    return kind.name if isinstance(kind, (CollectiveType, NodeType)) else ""
