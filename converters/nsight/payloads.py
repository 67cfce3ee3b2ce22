"""What NCCL tells of a call in the payload of its range, under the names that it registers."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.recording import Facts
from chakra_et.recording.libraries import operation
from chakra_et.recording.numbers import MOST_RANKS, rank_or_tag, size, text, whole

SOURCE: Final = "payload of NCCL's range"
_NAME: Final = re.compile(r"p?nccl(?P<what>[A-Z]\w*)")
_COMMUNICATOR, _RANKS, _RANK = "NCCL communicator ID", "No. of ranks", "Rank"
_SIZE, _ROOT, _PEER = "Message size [bytes]", "Root", "Peer rank"
_SCATTERS: Final = frozenset({CollectiveType.REDUCE_SCATTER, CollectiveType.SCATTER})
_PARTS: Final = _SCATTERS | {CollectiveType.ALL_TO_ALL}
"""Collectives of which NCCL tells the size of one rank's part, and the buffer holds all parts."""

Payload = dict[str, Any]


def is_nccl(name: str) -> bool:
    """Whether a range has the name of a call of NCCL: `ncclAllReduce`."""
    return _NAME.fullmatch(name) is not None


def payload_of(json: str) -> Payload:
    """The values of a payload by their names; nested ones stand beside the others."""
    try:
        found = msgspec.json.decode(json.encode("utf-8", "replace")) if json else {}
    except (msgspec.DecodeError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    inner = [value for value in found.values() if isinstance(value, dict)]
    return {key: value for part in (*inner, found) for key, value in part.items()}


def communicator_of(payload: Payload) -> str | None:
    """The id of the communicator; the members of one share it."""
    return text(payload.get(_COMMUNICATOR))


def place_of(payload: Payload) -> tuple[int, int] | None:
    """How many ranks a communicator has, and the caller's place among them."""
    ranks, place = whole(payload.get(_RANKS)), whole(payload.get(_RANK))
    if ranks is None or place is None or not 0 <= place < ranks <= MOST_RANKS:
        return None
    return ranks, place


def facts_of(name: str, payload: Payload, ranks: int | None) -> Facts | None:
    """What a range tells of a communication among `ranks`; None if it is none."""
    match = _NAME.fullmatch(name)
    kind = operation(match["what"]) if match else None
    if match is None or kind is None:
        return None
    facts = Facts(
        name=match["what"].lower(),
        size_bytes=_bytes(kind, payload, ranks),
        group=communicator_of(payload),
        group_size=ranks,
        root_in_group=rank_or_tag(payload.get(_ROOT)),
        sources=[SOURCE],
    )
    if isinstance(kind, NodeType):
        facts.peer_in_group = rank_or_tag(payload.get(_PEER))
    elif kind in _SCATTERS:
        facts.output_bytes = _told(payload)
    return facts


def _told(payload: Payload) -> int | None:
    told = whole(payload.get(_SIZE))
    return None if told is None else size(told)


def _bytes(kind: CollectiveType | NodeType, payload: Payload, ranks: int | None) -> int | None:
    """The bytes of the buffer that a rank brings."""
    told = _told(payload)
    # Numbers of both enumerations overlap.
    if told is None or isinstance(kind, NodeType) or kind not in _PARTS:
        return told
    return None if ranks is None else size(told * ranks)
