"""Execution traces (ETs) as formats: protobuf and JSON.

What most files do not need is imported where one does: a command about an ET starts sooner.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from chakra_et.converters.format import Format, Head, View, json_keys
from chakra_et.patterns import lazy_pattern

if TYPE_CHECKING:
    from chakra_et.model import Trace

_REMEDY: Final = "It is an ET already; use it as it is."
_TEXT: Final = lazy_pattern(rb"[\t\n\r\x20-\x7e\x80-\xff]*")
"""What no ET begins with: among the tags and lengths of a record are control characters."""
_TEXT_BYTES: Final = 1 << 10


def _recognise(head: Head) -> int | None:
    """By the first record: a length, and the tag of a field that metadata or a node has."""
    if head.is_json:
        return None
    start = head.start
    if _TEXT.fullmatch(start[:_TEXT_BYTES]):
        # A text whose first line is empty or a single character looks like a length and a tag.
        return None
    if start[:1] in (b"\x00", b"\x0a", b"\x12"):
        return 0
    at = 0
    while at < min(5, len(start)) and start[at] & 0x80:
        at += 1
    return 0 if len(start) > at + 1 and start[at + 1] in (0x08, 0x0A, 0x12) else None


def _read(path: Path, _: bool) -> Trace:
    from chakra_et.converters.et.reader import read_et

    return read_et(path)


def _write(trace: Trace) -> Iterator[bytes]:
    from chakra_et.converters.et.encoder import encode_et

    return encode_et(trace)


def _read_json(path: Path, _: bool) -> Trace:
    from chakra_et.converters.et.reader import read_et_json

    return read_et_json(path)


def _write_json(trace: Trace) -> Iterator[bytes]:
    from chakra_et.converters.et.json_form import encode_json

    return encode_json(trace)


FORMAT: Final = Format(
    name="ET (protobuf)",
    view=View.TRACE,
    recognise=_recognise,
    remedy=_REMEDY,
    read=_read,
    write=_write,
    suffixes=(".et",),
)
JSON_FORMAT: Final = Format(
    name="ET (JSON)",
    view=View.TRACE,
    recognise=json_keys(
        rb'"workload_graph"\s*:',
        rb'"format"\s*:\s*"chakra-et"',
        rb'"(?:data_?[dD]eps|ctrlDeps|durationMicros|int64Val)"\s*:',
        rb'"version"\s*:\s*"[^"]{0,64}"\s*,?\s*(?:"attr"|\}\s*\{)',
    ),
    remedy=_REMEDY,
    read=_read_json,
    write=_write_json,
    suffixes=(".json",),
    schema="et.schema.json",
)
