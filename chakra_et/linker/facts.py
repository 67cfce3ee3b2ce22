"""The facts of one communication, as each source tells them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final

import msgspec

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.linker.communication_table import (
    KERNEL_DTYPE,
    KERNEL_OPERATION,
    KERNEL_RANKS,
    MESSAGES,
    NO_COMMUNICATION,
    RECV,
    SEND,
    WITHOUT_ROOT,
    element_bytes,
    operation,
)
from chakra_et.linker.process_groups import MOST_RANKS, parse_ranks, rank_number

_CUT_LIST: Final = "..."
_TELLING: Final = (
    b'"Collective name"', b'"In msg nelems"', b'"Process Group Name"', b'"Concrete Inputs"',
)  # fmt: skip
"""Arguments without any of these say nothing of communication."""


@dataclass
class Facts:
    """What is known of one communication; None where a source does not tell."""

    name: str | None = None
    size_bytes: int | None = None
    group: str | None = None
    group_number: int | None = None
    group_size: int | None = None
    group_ranks: list[int] | None = None
    """Global ranks; None also where the list was cut."""
    peer: int | None = None
    """The other side's global rank."""
    peer_in_group: int | None = None
    root_in_group: int | None = None
    """The place in the group of the rank that hands out, or gets, what a collective moves."""
    output_bytes: int | None = None
    """The bytes that this rank gets."""
    tag: int | None = None
    """What tells messages between the same two ranks apart."""
    sequence: int | None = None
    """Which collective of its group it is."""
    dtype: str | None = None
    own_rank: int | None = None
    """The global rank of the process that communicates, from its place in the group."""
    splits_cut: bool | None = None
    """Whether the sizes of the parts for each rank are known only in part."""
    sources: list[str] = field(default_factory=list)

    @property
    def kind(self) -> CollectiveType | NodeType | None:
        """What the name stands for."""
        return operation(self.name) if self.name else None

    def merge(self, other: Facts | None) -> None:
        """Fill what is missing from another, lesser source.

        A name that is not known is missing too, where the other source has one that is.
        """
        if other is None:
            return
        filled = self.kind is None and other.kind is not None
        if filled:
            self.name = other.name
        for item in fields(self):
            if item.name != "sources" and getattr(self, item.name) is None:
                value = getattr(other, item.name)
                setattr(self, item.name, value)
                filled = filled or value is not None
        if filled:
            self.sources += other.sources


def positional_facts(values: list[Any]) -> Facts | None:
    """Facts in the inputs of `record_param_comms` of every era.

    The collective's name is the first text at the top level; before it stand the tensors (if any),
    the sequence number, the group and a rank, behind it the two split lists and the group's size.
    """
    at = next((i for i, value in enumerate(values) if isinstance(value, str)), None)
    if at is None or at < 3:
        return None
    group, rank, rest = values[at - 2], values[at - 1], values[at + 3 :]
    facts = Facts(name=values[at], sources=["positional inputs"])
    facts.size_bytes = size(tensor_bytes(values[: at - 3]))
    if isinstance(group, list):
        facts.group = _text(group[0]) if group else None
    elif isinstance(group, int) and group:
        facts.group_number = group
    numbers = [v for v in rest if isinstance(v, int) and not isinstance(v, bool)]
    splits = [v for v in values[at + 1 : at + 3] if isinstance(v, list) and v]
    if numbers:
        facts.group_size = numbers[-1]
    elif splits:
        facts.group_size = len(splits[0])
    kind = operation(values[at])
    if isinstance(kind, NodeType) and is_int(rank):
        facts.peer_in_group = rank
    if kind is CollectiveType.SCATTER and is_int(rank):
        facts.root_in_group = rank
    # Since groups have names, their first rank and their stride stand before the size.
    if _has_no_root(kind) and is_int(rank) and isinstance(group, list) and len(numbers) >= 3:
        start, stride = numbers[-3], numbers[-2]
        if start >= 0 and (stride > 0 or numbers[-1] == 1):
            facts.own_rank = _rank(start + stride * rank)
    return facts


def message_facts(operation_name: str, values: list[Any]) -> Facts | None:
    """The other side and the tag, in the inputs of the operation that sends or receives.

    `c10d::send` and `c10d::recv_` list the tensors, the group, the other side's place in it, and
    the tag; `c10d::recv_any_source_` has no place.
    """
    numbers = values[2:]
    if operation_name not in MESSAGES or not numbers or not all(map(is_int, numbers)):
        return None
    facts = Facts(tag=_rank(numbers[-1]), sources=["positional inputs"])
    if len(numbers) == 2:
        facts.peer_in_group = _rank(numbers[0])
    return facts


def tensor_bytes(value: Any) -> int:
    """The bytes of all tensors in decoded input values, however they are nested."""
    if not isinstance(value, list):
        return 0
    if len(value) == 6 and isinstance(value[5], str) and all(map(is_int, value[:5])):
        return int(value[3] * value[4])
    return sum(map(tensor_bytes, value))


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def argument_facts(args: bytes, source: str) -> Facts:
    if not any(key in args for key in _TELLING):
        return Facts()
    try:
        found = msgspec.json.decode(args)
    except (msgspec.DecodeError, RecursionError):
        return Facts()
    if not isinstance(found, dict):
        return Facts()
    name = _text(found.get("Collective name")) or _named_input(found.get("Concrete Inputs"))
    facts = Facts(
        name=name,
        size_bytes=_bytes(found.get("In msg nelems"), found.get("dtype")),
        group=_text(found.get("Process Group Name")),
        group_size=_whole(found.get("Group size")),
        group_ranks=parse_ranks(found.get("Process Group Ranks")) or _strided(found) or None,
        splits_cut=True if _CUT_LIST in str(found.get("In split size", "")) else None,
        sequence=_whole(found.get("Seq")),
        dtype=_text(found.get("dtype")),
        sources=[source],
    )
    kind = operation(name or "")
    place, ranks = _whole(found.get("Rank")), facts.group_ranks
    if _has_no_root(kind) and place is not None and ranks and 0 <= place < len(ranks):
        facts.own_rank = ranks[place]
    if kind is CollectiveType.SCATTER:
        facts.root_in_group = place
        facts.output_bytes = _bytes(found.get("Out msg nelems"), found.get("dtype"))
    if kind is SEND or kind is RECV:
        facts.peer = _rank(found.get("Dst Rank" if kind is SEND else "Src Rank"))
    return facts


def _named_input(values: Any) -> str | None:
    """The name of a collective among the inputs of its record, as older profiles have them."""
    texts = values if isinstance(values, list) else []
    known = (t for t in texts if isinstance(t, str) and _is_name(t.strip('"')))
    return next((text.strip('"') for text in known), None)


def _is_name(text: str) -> bool:
    return operation(text) is not None or text in NO_COMMUNICATION


def _has_no_root(kind: CollectiveType | NodeType | None) -> bool:
    """Whether a record's rank is that of the caller; messages have numbers of their own."""
    return isinstance(kind, CollectiveType) and kind in WITHOUT_ROOT


def attribute_facts(attributes: dict[str, Any]) -> Facts:
    name = _text(attributes.get("collective_name"))
    if name is None:
        return Facts()
    facts = Facts(
        name=name,
        size_bytes=_bytes(attributes.get("in_msg_nelems"), attributes.get("dtype")),
        group=_text(attributes.get("pg_name")),
        group_size=_whole(attributes.get("pg_size")),
        dtype=_text(attributes.get("dtype")),
        sources=["host attributes"],
    )
    if facts.kind is CollectiveType.SCATTER:
        facts.output_bytes = _bytes(attributes.get("out_msg_nelems"), attributes.get("dtype"))
    return facts


def kernel_name_facts(name: str) -> Facts | None:
    match = KERNEL_OPERATION.search(name.split("(")[0])
    return Facts(name=match[0], sources=["kernel name"]) if match else None


def kernel_dtype(name: str) -> str | None:
    """The type of the elements that a kernel reduces, where its name tells."""
    match = KERNEL_DTYPE.search(name) or KERNEL_RANKS.search(name)
    return match["dtype"] if match else None


def ranks_in_name(kernel: str) -> int | None:
    """How many ranks take part, where a kernel is made for a number of them."""
    match = KERNEL_RANKS.search(kernel)
    return int(match["ranks"]) if match else None


def _strided(args: dict[str, Any]) -> list[int]:
    """The members of a group whose list was cut: they lie at even distances."""
    start, stride, size = (
        _whole(args.get(key)) for key in ("Global rank start", "Global rank stride", "Group size")
    )
    if start is None or size is None or start < 0 or not 0 < size <= MOST_RANKS:
        return []
    ranks = [start + (stride or 1) * place for place in range(size)]
    return ranks if rank_number(ranks[-1]) is not None else []


def _bytes(elements: Any, dtype: Any) -> int | None:
    width = element_bytes(dtype) if isinstance(dtype, str) else None
    count = _whole(elements)
    return None if width is None or count is None else size(count * width)


def size(size_bytes: int) -> int | None:
    """A size that can be: neither negative nor beyond 64 bits."""
    return size_bytes if 0 <= size_bytes < 1 << 63 else None


def _rank(value: Any) -> int | None:
    """A rank, or a tag, that can be: they are 32-bit integers wherever they are written."""
    rank = _whole(value)
    return rank if rank is not None and 0 <= rank < 1 << 31 else None


def _whole(value: Any) -> int | None:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if is_int(value) else None


def _text(value: Any) -> str | None:
    return str(value) if is_int(value) or (isinstance(value, str) and value) else None
