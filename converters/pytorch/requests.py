"""What an operation that asks a backend for a transfer tells of it: `c10d::scatter_` and others.

Such an operation does not name its process group. But of some collectives it lists one tensor for
each rank of the group, and of others the place of a root or of the other side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from chakra_et.converters.pytorch.values import tensor_bytes
from chakra_et.recording import Facts, Request
from chakra_et.recording.libraries import FUNCTIONAL, MESSAGES
from chakra_et.recording.numbers import is_int, rank_or_tag, size


def read_request(name: str, values: list[Any]) -> Request:
    """What an operation tells, by its name and its decoded input values."""
    if name in MESSAGES:
        return Request(_message(values), message=True)
    request = Request(Facts(), group=_group_name(name, values))
    form = _FORMS.get(name.removeprefix("c10d::"))
    if form is None:
        return request
    request.root = _place(values, form.root)
    if form.each is not None:
        request.group_size = _each(values, form.each)
    elif form.whole is not None:
        request.group_size = _ratio(values, *form.whole)
    if form.facts is not None:
        request.facts = form.facts(values)
    return request


def _message(values: list[Any]) -> Facts:
    """The other side and the tag of a message that is sent or received.

    `c10d::send` and `c10d::recv_` list the tensors, the group, the other side's place in it, and
    the tag; `c10d::recv_any_source_` has no place.
    """
    numbers = values[2:]
    if not numbers or not all(map(is_int, numbers)):
        return Facts()
    facts = Facts(tag=rank_or_tag(numbers[-1]), sources=["positional inputs"])
    if len(numbers) == 2:
        facts.peer_in_group = rank_or_tag(numbers[0])
    return facts


def _group_name(name: str, values: list[Any]) -> str | None:
    """The name of the process group, where an operation tells it: as its last argument."""
    if not name.startswith(FUNCTIONAL):
        return None
    texts = [value for value in values if isinstance(value, str) and not value.startswith("<")]
    return texts[-1] if texts else None


def _scatter(values: list[Any]) -> Facts:
    """On the root all that it hands out, on the others the buffer that they get."""
    given, taken = tensor_bytes(values[1:2]), tensor_bytes(values[:1])
    return Facts(size_bytes=size(given or taken), sources=["tensors of the call"])


def _reduce_scatter(values: list[Any]) -> Facts:
    """gloo reduces all of it on every rank, each tensor by itself, and records it so."""
    return Facts("reduce_scatter", size(tensor_bytes(values[1:2])), sources=["call"])


class _Form(msgspec.Struct, frozen=True):
    """Where the inputs of an operation tell how many ranks its group has, and which is the root.

    `each` is the argument that lists a tensor for each rank, `whole` the arguments of which the
    first is as many times larger than the second as the group has ranks.
    """

    each: int | None = None
    whole: tuple[int, int] | None = None
    root: int | None = None
    facts: Callable[[list[Any]], Facts] | None = None


_FORMS: Final = {
    "allgather_": _Form(each=0),
    "_allgather_base_": _Form(whole=(0, 1)),
    "allgather_into_tensor_coalesced_": _Form(whole=(0, 1)),
    "gather_": _Form(each=0, root=3),
    "scatter_": _Form(each=1, root=3, facts=_scatter),
    "reduce_scatter_": _Form(each=1, facts=_reduce_scatter),
    "_reduce_scatter_base_": _Form(whole=(1, 0), facts=_reduce_scatter),
    "reduce_scatter_tensor_coalesced_": _Form(whole=(1, 0), facts=_reduce_scatter),
    "alltoall_": _Form(each=1),
    "alltoall_base_": _Form(each=4),
    "broadcast_": _Form(root=2),
    "reduce_": _Form(root=3),
}
"""By the operation's name without its namespace."""


def _place(values: list[Any], at: int | None) -> int | None:
    value = values[at] if at is not None and at < len(values) else None
    return int(value) if value is not None and is_int(value) and value >= 0 else None


def _each(values: list[Any], at: int) -> int | None:
    """How many entries the innermost list of an argument has: tensors, or split sizes."""
    items = values[at] if at < len(values) else None
    while isinstance(items, list) and items and _is_list_of_tensors(items[0]):
        items = items[0]
    return len(items) if isinstance(items, list) and items and items != [[]] else None


def _is_list_of_tensors(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], list)


def _ratio(values: list[Any], whole: int, part: int) -> int | None:
    """How many times larger one argument is than another; None if that is no whole number."""
    large, small = (tensor_bytes(values[at : at + 1]) for at in (whole, part))
    return large // small if small and large and large % small == 0 else None
