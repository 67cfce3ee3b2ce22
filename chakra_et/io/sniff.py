"""What kind of file something is, told by its content and never by its name."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Final

from chakra_et.errors import FormatError
from chakra_et.io.source import head

_HEAD_BYTES: Final = 1 << 16
_WANTED = "Wanted: a PyTorch host trace, a Kineto profile, or an ET (protobuf or JSON)."


class FileKind(Enum):
    """The kinds of input; the value is what people call them."""

    HOST = "PyTorch host trace"
    DEVICE = "Kineto profile"
    ET = "ET (protobuf)"
    ET_JSON = "ET (JSON)"


_KEYS: Final = (
    (re.compile(rb'"traceEvents"\s*:'), FileKind.DEVICE),
    (re.compile(rb'"workload_graph"\s*:'), FileKind.ET_JSON),
    (re.compile(rb'"format"\s*:\s*"chakra-et"'), FileKind.ET_JSON),
    (re.compile(rb'"schema"\s*:\s*"[^"]*".*?"nodes"\s*:', re.DOTALL), FileKind.HOST),
    (re.compile(rb'"nodes"\s*:\s*\['), FileKind.HOST),
    (re.compile(rb'"(schemaVersion|deviceProperties|baseTimeNanoseconds)"\s*:'), FileKind.DEVICE),
)
_BARE_EVENTS = re.compile(rb'\s*\[\s*(\]|\{.*?"ph"\s*:)', re.DOTALL)


def sniff(path: str | Path) -> FileKind:
    """The kind of a file. Raises FormatError for one that is none of them, saying what it is."""
    start = head(path, _HEAD_BYTES)
    if not start.strip():
        what = "the file is empty" if not start else "the file holds nothing but blanks"
        remedy = "The recording did not finish; record it again. " + _WANTED
        raise FormatError(what, path=path, remedy=remedy)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"{":
        found = [(m.start(), kind) for pattern, kind in _KEYS if (m := pattern.search(text))]
        if found:
            return min(found, key=lambda item: item[0])[1]
        raise FormatError(
            'JSON, but of no kind known here: neither "nodes", "traceEvents" nor '
            '"workload_graph" stands among the first keys',
            path=path,
            remedy=_WANTED,
        )
    if text[:1] == b"[":
        if _BARE_EVENTS.match(text):
            return FileKind.DEVICE
        raise FormatError("a JSON list, but not of profiler events", path=path, remedy=_WANTED)
    if start[:1] in (b"\x00", b"\x0a", b"\x12") or _starts_like_frames(start):
        return FileKind.ET
    raise FormatError("neither JSON nor an ET in protobuf", path=path, remedy=_WANTED)


def _starts_like_frames(start: bytes) -> bool:
    """Whether a varint length is followed by the tag of a field that metadata or a node has."""
    at = 0
    while at < min(5, len(start)) and start[at] & 0x80:
        at += 1
    return len(start) > at + 1 and start[at + 1] in (0x08, 0x0A, 0x12)
