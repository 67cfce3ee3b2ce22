"""What the record of a collective tells: by attributes, which count first, and by its inputs."""

from __future__ import annotations

from typing import Any, Final

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.recording import Facts
from chakra_et.recording.libraries import WITHOUT_ROOT, element_bytes, operation
from chakra_et.recording.numbers import is_int, rank_or_tag, size, text, whole

ATTRIBUTES: Final = (
    "collective_name", "in_msg_nelems", "out_msg_nelems", "dtype", "pg_name", "pg_size",
)  # fmt: skip
"""The attributes that facts are read from."""


def attribute_facts(attributes: dict[str, Any]) -> Facts:
    """What the attributes of the record tell."""
    name = text(attributes.get("collective_name"))
    if name is None:
        return Facts()
    facts = Facts(
        name=name,
        size_bytes=_bytes(attributes.get("in_msg_nelems"), attributes.get("dtype")),
        group=text(attributes.get("pg_name")),
        group_size=whole(attributes.get("pg_size")),
        dtype=text(attributes.get("dtype")),
        sources=["host attributes"],
    )
    if facts.kind is CollectiveType.SCATTER:
        facts.output_bytes = _bytes(attributes.get("out_msg_nelems"), attributes.get("dtype"))
    return facts


def positional_facts(values: list[Any], sizes: list[int]) -> Facts | None:
    """Facts in the inputs of `record_param_comms` of every era; `sizes` are the bytes of each.

    The collective's name is the first text at the top level; before it stand the tensors (if any),
    the sequence number, the group and a rank, behind it the two split lists and the group's size.
    """
    at = next((i for i, value in enumerate(values) if isinstance(value, str)), None)
    if at is None or at < 3:
        return None
    group, rank, rest = values[at - 2], values[at - 1], values[at + 3 :]
    facts = Facts(name=values[at], sources=["positional inputs"])
    facts.size_bytes = size(sum(sizes[: at - 3]))
    if isinstance(group, list):
        facts.group = text(group[0]) if group else None
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
    without_root = isinstance(kind, CollectiveType) and kind in WITHOUT_ROOT
    if without_root and is_int(rank) and isinstance(group, list) and len(numbers) >= 3:
        start, stride = numbers[-3], numbers[-2]
        if start >= 0 and (stride > 0 or numbers[-1] == 1):
            facts.own_rank = rank_or_tag(start + stride * rank)
    return facts


def _bytes(elements: Any, dtype: Any) -> int | None:
    width = element_bytes(dtype) if isinstance(dtype, str) else None
    count = whole(elements)
    return None if width is None or count is None else size(count * width)
