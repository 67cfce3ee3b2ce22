"""What kind of file something is, told by its content and never by its name."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Final, NoReturn

from chakra_et.errors import FormatError
from chakra_et.io.others import begins_as_another, surely_another
from chakra_et.io.source import blocks, head

_HEAD_BYTES: Final = 1 << 16
_WANTED = "Wanted: a PyTorch host trace, a Kineto profile, or an ET (protobuf or JSON)."


WORKLOAD_REMEDY: Final = (
    "It tells layers, but neither ranks nor who waits for whom. `chakra_converter Text` of "
    "mlc-chakra makes an ET of each rank of it; those are read."
)


class OtherKindError(FormatError):
    """A file of a kind that is known, but is no input."""


class FileKind(Enum):
    """The kinds of input; the value is what people call them."""

    HOST = "PyTorch host trace"
    DEVICE = "Kineto profile"
    LINKED = "linked host and device trace (JSON of another tool)"
    ET = "ET (protobuf)"
    ET_JSON = "ET (JSON)"
    WORKLOAD = "workload text (ASTRA-sim 1.0)"


_KEYS: Final = (
    (re.compile(rb'"traceEvents"\s*:'), FileKind.DEVICE),
    (re.compile(rb'"workload_graph"\s*:'), FileKind.ET_JSON),
    (re.compile(rb'"format"\s*:\s*"chakra-et"'), FileKind.ET_JSON),
    (re.compile(rb'"(?:data_?[dD]eps|ctrlDeps|durationMicros|int64Val)"\s*:'), FileKind.ET_JSON),
    (re.compile(rb'"version"\s*:\s*"[^"]{0,64}"\s*,?\s*(?:"attr"|\}\s*\{)'), FileKind.ET_JSON),
    (re.compile(rb'"schema"\s*:\s*"[^"]*".*?"nodes"\s*:', re.DOTALL), FileKind.HOST),
    (re.compile(rb'"nodes"\s*:\s*\['), FileKind.HOST),
    (re.compile(rb'"(schemaVersion|deviceProperties|baseTimeNanoseconds)"\s*:'), FileKind.DEVICE),
)
"""Keys that only one kind has; the one that stands first in the file tells."""
_LINKED: Final = re.compile(rb'"(?:inclusive_dur|exclusive_dur|inter_thread_dep)"\s*:')
_BARE_EVENTS: Final = re.compile(rb'\s*\[\s*(\]|\{.*?"ph"\s*:)', re.DOTALL)
_WORKLOAD: Final = re.compile(
    rb"\s*(?:MICRO|DATA|MODEL|HYBRID_\w+|DISTRIBUTED_INFERENCE|COLOCATED|PREFILL|DECODE)\b[^\n]*"
    rb"\n\s*\d+\s*\n"
)


def sniff(path: str | Path) -> FileKind:
    """The kind of a file. Raises FormatError for one that is none of them, saying what it is."""
    start = head(path, _HEAD_BYTES)
    if not start.strip():
        what = "the file is empty" if not start else "the file holds nothing but blanks"
        _refuse(path, what, "The recording did not finish; record it again. " + _WANTED)
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"{":
        return _kind_of_object(path, text)
    if text[:1] == b"[":
        if _BARE_EVENTS.match(text):
            return FileKind.DEVICE
        _refuse(path, "a JSON list, but not of profiler events")
    if _WORKLOAD.match(text):
        return FileKind.WORKLOAD
    if other := surely_another(start, Path(path)):
        raise OtherKindError(f"this is {other.what}", path=path, remedy=other.remedy or _WANTED)
    if start[:1] in (b"\x00", b"\x0a", b"\x12") or _starts_like_frames(start):
        return FileKind.ET
    if other := begins_as_another(text):
        what = f"neither JSON nor an ET in protobuf, but {other.what}"
        _refuse(path, what, other.remedy or _WANTED)
    _refuse(path, "neither JSON nor an ET in protobuf")


def _kind_of_object(path: str | Path, text: bytes) -> FileKind:
    found = [(m.start(), kind) for pattern, kind in _KEYS if (m := pattern.search(text))]
    if not found:
        _refuse(
            path,
            'JSON, but of no kind known here: neither "nodes", "traceEvents" nor '
            '"workload_graph" stands among the first keys',
        )
    kind = min(found, key=lambda item: item[0])[1]
    return FileKind.LINKED if kind is FileKind.HOST and _LINKED.search(text) else kind


def _refuse(path: str | Path, what: str, remedy: str = _WANTED) -> NoReturn:
    """Raise the error for what a file is; if it is damaged, that is the error."""
    taken = 0
    for block in blocks(path):
        taken += len(block)
        if taken >= _HEAD_BYTES:
            break
    raise FormatError(what, path=path, remedy=remedy)


def _starts_like_frames(start: bytes) -> bool:
    """Whether a varint length is followed by the tag of a field that metadata or a node has."""
    at = 0
    while at < min(5, len(start)) and start[at] & 0x80:
        at += 1
    return len(start) > at + 1 and start[at + 1] in (0x08, 0x0A, 0x12)
