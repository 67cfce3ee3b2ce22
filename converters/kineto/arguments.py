"""What the arguments of records mean: communication, waits, and where copies go."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import numpy as np
from msgspec.structs import replace

from chakra_et.columns import Rows
from chakra_et.converters.kineto.shapes import operands_of
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.io.json_text import from_json
from chakra_et.kernel import kernel
from chakra_et.recording import DeviceTrace, Facts, Kind, Operands, Role, Sparse, Waits
from chakra_et.recording.carried_texts import CarriedTexts
from chakra_et.recording.libraries import (
    NO_COMMUNICATION,
    RECV,
    SEND,
    WITHOUT_ROOT,
    element_bytes,
    operation,
)
from chakra_et.recording.numbers import (
    MOST_RANKS,
    parse_ranks,
    rank_number,
    rank_or_tag,
    size,
    text,
    whole,
)
from chakra_et.recording.waits import NOT_TOLD

_SCATTER: Final = CollectiveType.SCATTER
_CUT_LIST: Final = "..."
_OF_KERNELS: Final = ('"Collective name"', '"Process Group Name"')
_OF_OPERATIONS: Final = (*_OF_KERNELS, '"In msg nelems"', '"Concrete Inputs"')
"""Arguments without any of these say nothing of communication."""
_SEARCHED: Final = 1 << 14
"""So many arguments are searched at once: those of a long recording are packed."""
_INPUTS: Final = '"Input'
_SOURCES: Final = {True: "kernel args", False: "operation args"}
"""What a report calls these sources: of device work, and of others."""

_ABSENT: Final = msgspec.Raw()

_WAITS: Final = {
    "Stream Sync": Kind.WAIT_STREAM,
    "Context Sync": Kind.WAIT_DEVICE,
    "Event Sync": Kind.WAIT_EVENT,
    "Stream Wait Event": Kind.STREAM_WAIT,
}
"""The profiler's own words for its records of waits."""
_NO_STREAM: Final = (-1, 0xFFFFFFFF)
"""Older profilers write -1 as an unsigned number."""


def _as_written(key: str) -> Any:
    """A field for an argument that is decoded later; where there is none, nothing is encoded."""
    return msgspec.field(default=_ABSENT, name=key)


class _Telling(msgspec.Struct, omit_defaults=True, gc=False):
    """The arguments that facts of a communication, and inputs, are read from.

    `sequence` is a number of each communication; encoded without it, those of many are equal.
    """

    sequence: Any = msgspec.field(default=None, name="Seq")
    name: msgspec.Raw = _as_written("Collective name")
    inputs: msgspec.Raw = _as_written("Concrete Inputs")
    in_elements: msgspec.Raw = _as_written("In msg nelems")
    out_elements: msgspec.Raw = _as_written("Out msg nelems")
    dtype: msgspec.Raw = _as_written("dtype")
    group: msgspec.Raw = _as_written("Process Group Name")
    ranks: msgspec.Raw = _as_written("Process Group Ranks")
    group_size: msgspec.Raw = _as_written("Group size")
    first_rank: msgspec.Raw = _as_written("Global rank start")
    stride: msgspec.Raw = _as_written("Global rank stride")
    rank: msgspec.Raw = _as_written("Rank")
    source: msgspec.Raw = _as_written("Src Rank")
    target: msgspec.Raw = _as_written("Dst Rank")
    splits: msgspec.Raw = _as_written("In split size")
    shapes: msgspec.Raw = _as_written("Input Dims")
    types: msgspec.Raw = _as_written("Input type")
    old_types: msgspec.Raw = _as_written("Input Types")


class _WaitArgs(msgspec.Struct, gc=False):
    """Arguments of a record of a wait."""

    kind: str = msgspec.field(default="", name="cuda_sync_kind")
    wait_on_stream: Any = -1
    record: Any = msgspec.field(default=-1, name="wait_on_cuda_event_record_corr_id")


class _CopyArgs(msgspec.Struct, gc=False):
    """What newer profilers say of a copy in its arguments, and older ones in its name."""

    kind: Any = msgspec.field(default="", name="copy kind")
    target: Any = msgspec.field(default="", name="dst kind")


def read_arguments(device: DeviceTrace) -> None:
    """Fill the tables that hold what arguments tell."""
    _read_communication(device)
    device.waits = _waits(device)
    copies = np.flatnonzero((device.role == Role.WORK) & (device.kind == Kind.COPY))
    device.blocks[copies] = _to_pageable(device, copies)


def _read_communication(device: DeviceTrace) -> None:
    collectives: list[tuple[int, Facts]] = []
    operands: list[tuple[int, Operands]] = []
    args = device.args
    work = _telling(args, device.rows(Role.WORK), _OF_KERNELS)
    operations = _telling(args, device.rows(Role.OP), (*_OF_OPERATIONS, _INPUTS))
    is_work = set(work)
    for row in sorted(work + operations):
        text = args[row]
        inputs, facts = _read(text, work=row in is_work)
        if _INPUTS in text:
            operands.append((row, inputs))
        if facts is not None and any(key in text for key in _OF_OPERATIONS):
            collectives.append((row, facts))
    device.collectives, device.operands = Sparse(collectives), Sparse(operands)


def _read(text: str, *, work: bool) -> tuple[Operands, Facts | None]:
    """The inputs and the facts that arguments tell; None for such that cannot be read.

    Records share them: whoever adds what else is told takes a copy.
    """
    try:
        told = from_json(text, type=_Telling)
    except msgspec.DecodeError:
        return [], None
    sequence, told.sequence = whole(told.sequence), None
    operands, facts = _judged(msgspec.json.encode(told), work)
    if facts is not None and sequence is not None:
        facts = replace(facts, sequence=sequence)
    return operands, facts


@lru_cache(maxsize=1 << 12)
def _judged(text: bytes, work: bool) -> tuple[Operands, Facts | None]:
    """The same of arguments that tell nothing of their own: those of most records are equal."""
    try:
        args = from_json(text)
    except msgspec.DecodeError:
        return [], None
    return operands_of(args), facts_of(args, work=work)


def _telling(args: Sequence[str], rows: Rows, words: Sequence[str]) -> list[int]:
    """Those of some rows whose arguments hold any of some words.

    Most have no arguments, or such that hold none: these are only searched.
    """
    if isinstance(args, CarriedTexts):
        return _telling_packed(args, rows[args.told[rows]], words)
    module = kernel()
    if module is not None:
        found: list[int] = module.containing(args, rows, words).tolist()
        return found
    told = [row for row in rows.tolist() if args[row]]
    return sorted({row for word in words for row in told if word in args[row]})


def _telling_packed(args: CarriedTexts, rows: Rows, words: Sequence[str]) -> list[int]:
    """The same for rows of packed arguments, all of which have some."""
    telling: list[int] = []
    for start in range(0, len(rows), _SEARCHED):
        some = rows[start : start + _SEARCHED]
        texts = [args[row] for row in some.tolist()]
        telling += some[_telling(texts, np.arange(len(some)), words)].tolist()
    return telling


def facts_of(args: dict[str, Any], *, work: bool) -> Facts:
    """What decoded arguments, of device work or of an operation, tell of a communication.

    Which communication of its group it is stands beside them, as each has a number of its own.
    """
    name = text(args.get("Collective name")) or _named_input(args.get("Concrete Inputs"))
    facts = Facts(
        name=name,
        size_bytes=_bytes(args.get("In msg nelems"), args.get("dtype")),
        group=text(args.get("Process Group Name")),
        group_size=whole(args.get("Group size")),
        group_ranks=parse_ranks(args.get("Process Group Ranks")) or _strided(args) or None,
        splits_cut=True if _CUT_LIST in str(args.get("In split size", "")) else None,
        dtype=text(args.get("dtype")),
        sources=[_SOURCES[work]],
    )
    kind = operation(name or "")
    place, ranks = whole(args.get("Rank")), facts.group_ranks
    if _has_no_root(kind) and place is not None and ranks and 0 <= place < len(ranks):
        facts.own_rank = ranks[place]
    if kind is _SCATTER:
        facts.root_in_group = place
        facts.output_bytes = _bytes(args.get("Out msg nelems"), args.get("dtype"))
    if kind is SEND or kind is RECV:
        facts.peer = rank_or_tag(args.get("Dst Rank" if kind is SEND else "Src Rank"))
    return facts


def _named_input(values: Any) -> str | None:
    """The name of a collective among the inputs of its record, as older profiles have them."""
    texts = values if isinstance(values, list) else []
    known = (t for t in texts if isinstance(t, str) and _is_name(t.strip('"')))
    return next((found.strip('"') for found in known), None)


def _is_name(name: str) -> bool:
    return operation(name) is not None or name in NO_COMMUNICATION


def _has_no_root(kind: CollectiveType | NodeType | None) -> bool:
    """Whether a record's rank is that of the caller; messages have numbers of their own."""
    return isinstance(kind, CollectiveType) and kind in WITHOUT_ROOT


def _strided(args: dict[str, Any]) -> list[int]:
    """The members of a group whose list was cut: they lie at even distances."""
    start, stride, count = (
        whole(args.get(key)) for key in ("Global rank start", "Global rank stride", "Group size")
    )
    if start is None or count is None or start < 0 or not 0 < count <= MOST_RANKS:
        return []
    ranks = [start + (stride or 1) * place for place in range(count)]
    return ranks if rank_number(ranks[-1]) is not None else []


def _bytes(elements: Any, dtype: Any) -> int | None:
    width = element_bytes(dtype) if isinstance(dtype, str) else None
    count = whole(elements)
    return None if width is None or count is None else size(count * width)


def _waits(device: DeviceTrace) -> Waits:
    names = device.names.in_order
    columns: list[tuple[int, ...]] = []
    for row in device.rows(Role.SYNC).tolist():
        told = _wait_args(device.args[row])
        kind = _WAITS.get(told.kind or names[device.name[row]])
        if kind is not None:
            streams = _stream(int(device.stream[row])), _stream(told.wait_on_stream)
            place = int(device.device[row]), *streams
            columns.append((row, kind, *place, _number(told.record)))
    return Waits(*np.array(columns, np.int64).reshape(-1, 6).T)


def _wait_args(args: str) -> _WaitArgs:
    try:
        return from_json(args or "{}", type=_WaitArgs)
    except msgspec.DecodeError:
        return _WaitArgs()


def _stream(value: Any) -> int:
    """A stream's number."""
    number = _number(value)
    return NOT_TOLD if number in _NO_STREAM else number


def _number(value: Any) -> int:
    return value if isinstance(value, int) and abs(value) < 1 << 63 else NOT_TOLD


def _to_pageable(device: DeviceTrace, copies: Rows) -> Rows:
    """Which copies go from a device to pageable memory of the host: 1 or 0 for each."""
    names = device.names.in_order
    by_name = np.array(["Pageable)" in name and "DtoH" in name for name in names], np.int64)
    found = by_name[device.name[copies]] if len(copies) else copies
    for place, row in enumerate(copies.tolist()):
        if '"dst kind"' in device.args[row]:
            found[place] = _says_pageable(device.args[row])
    return found


def _says_pageable(args: str) -> bool:
    try:
        copy = from_json(args, type=_CopyArgs)
    except (msgspec.DecodeError, RecursionError):
        return False
    # Whatever the direction is called, it begins with where the copy comes from.
    from_host = str(copy.kind).lower().startswith("h")
    return str(copy.target).lower() == "pageable" and not from_host
