"""Ranges of NVTX: annotations, operations of PyTorch's `emit_nvtx`, and calls of NCCL."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Final

import msgspec
import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.converters.nsight.communicators import Communicators
from chakra_et.converters.nsight.database import MISSING, Database, Numbers
from chakra_et.converters.nsight.payloads import is_nccl, payload_of
from chakra_et.converters.nsight.records import Records, pid_of, tid_of
from chakra_et.converters.nsight.schema import (
    DOMAIN,
    FREE,
    NESTED,
    NO_END,
    NO_RANGES,
    RANGES,
    TWO_THREADS,
    UNKNOWN_RANGE,
)
from chakra_et.recording import Role

_NEEDED: Final = ("start", "eventType", "globalTid")
_OPTIONAL: Final = {
    "end": MISSING, "endGlobalTid": MISSING, "textId": MISSING, "domainId": 0,
    "jsonTextId": MISSING,
}  # fmt: skip
_ANNOTATION, _OPERATION = "user_annotation", "cpu_op"
_PART: Final = r", (?:seq|op_id|sizes|input_op_ids) = "
_OPERATOR: Final = re.compile(rf"(?P<name>.+?)(?P<rest>{_PART}.*)", re.DOTALL)
_SEQUENCE: Final = re.compile(r", seq = (\d{1,18})\b")
_SIZES: Final = re.compile(r", sizes = (\[.*?\])(?:, input_op_ids = |$)", re.DOTALL)
_FAR_NS: Final = 1 << 62
_TYPES: Final = (*NESTED, *FREE)


class _Range(msgspec.Struct, frozen=True, gc=False):
    """What the text of a range says."""

    name: str
    is_operation: bool = False
    sequence: int = -1
    shapes: bytes = b""


@lru_cache(maxsize=1 << 16)
def read_text(text: str) -> _Range:
    """The parts of a range's text: `aten::mm, seq = 12, op_id = 7` is an operation's."""
    match = _OPERATOR.fullmatch(text)
    if match is None:
        return _Range(text, text.startswith("aten::"))
    sequence, sizes = _SEQUENCE.search(match["rest"]), _SIZES.search(match["rest"])
    return _Range(
        match["name"],
        True,
        int(sequence[1]) if sequence else -1,
        sizes[1].encode() if sizes else b"",
    )


def add_ranges(database: Database, records: Records) -> Communicators:
    """Take in ranges that begin and end on one thread; returns what NCCL's tell of its groups."""
    rows = database.numbers(RANGES, _NEEDED, _OPTIONAL)
    texts = _texts(database, rows, "text", "textId")
    payloads = _texts(database, rows, "jsonText", "jsonTextId")
    records.lose(RANGES, rows.lost)
    kept = _kept(records, rows)
    is_nccl_range = _of_nccl(rows, texts)
    communicators = Communicators()
    found = _add(records, rows, kept, texts, is_nccl_range)
    for row, place in zip(*found, strict=True):
        if is_nccl_range[place]:
            pid, name = int(pid_of(rows["globalTid"][place])), texts[place]
            communicators.see(row, pid, name, payload_of(payloads[place]))
    return communicators


def _texts(database: Database, rows: Numbers, column: str, id_column: str) -> list[str]:
    """The text of each row: its own, else the one that it names by a number."""
    own = database.texts(RANGES, _NEEDED, column) if len(rows) else []
    ids = rows[id_column].tolist()
    strings = database.strings if any(i != MISSING for i in ids) else {}
    return [text or strings.get(i, "") for text, i in zip(own, ids, strict=True)]


def _kept(records: Records, rows: Numbers) -> Rows:
    """The places of the ranges that become records; the others are counted."""
    kind, end = rows["eventType"], rows["end"]
    is_range = np.isin(kind, _TYPES)
    for number, count in Counter(kind[~is_range].tolist()).items():
        records.leave_out(RANGES, NO_RANGES.get(number, UNKNOWN_RANGE), count)
    ended = is_range & (end >= rows["start"]) & (end <= _FAR_NS)
    records.leave_out(RANGES, NO_END, int(np.count_nonzero(is_range & ~ended)))
    other = rows["endGlobalTid"]
    apart = np.isin(kind, FREE) & (other > 0) & (other != rows["globalTid"])
    records.leave_out(RANGES, TWO_THREADS, int(np.count_nonzero(ended & apart)))
    return np.flatnonzero(ended & ~apart)


def _of_nccl(rows: Numbers, texts: list[str]) -> Mask:
    """Which ranges are of NCCL: by their domain, as each process names its own, or their name."""
    process, domain = pid_of(rows["globalTid"]).tolist(), rows["domainId"].tolist()
    definitions = np.flatnonzero(rows["eventType"] == DOMAIN).tolist()
    named = {(process[i], domain[i]) for i in definitions if texts[i] == "NCCL"}
    return np.array(
        [
            is_nccl(text) and (not named or (pid, own) in named)
            for text, pid, own in zip(texts, process, domain, strict=True)
        ],
        np.bool_,
    )


def _add(
    records: Records, rows: Numbers, kept: Rows, texts: list[str], is_nccl_range: Mask
) -> tuple[list[int], list[int]]:
    """The records of ranges, and the place of the range of each."""
    found = [read_text(texts[place]) for place in kept.tolist()]
    operation = np.array([item.is_operation for item in found], np.bool_) | is_nccl_range[kept]
    row_of: list[int] = []
    place_of: list[int] = []
    for category, mine in ((_OPERATION, operation), (_ANNOTATION, ~operation)):
        chosen = np.flatnonzero(mine)
        place, own = kept[chosen], [found[i] for i in chosen.tolist()]
        process = pid_of(rows["globalTid"][place])
        row = records.add(
            Role.OP,
            category,
            _codes([records.names[item.name] for item in own]),
            start=rows["start"][place],
            end=rows["end"][place],
            process=process,
            pid=process,
            tid=tid_of(rows["globalTid"][place]),
            sequence=_codes([item.sequence for item in own]),
            shapes=_codes([records.shape_texts[item.shapes] for item in own]),
        )
        row_of += row.tolist()
        place_of += place.tolist()
    return row_of, place_of


def _codes(values: list[int]) -> Rows:
    return np.array(values, np.int64)
