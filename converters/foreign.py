"""Files that people bring by mistake: what they are, and what to do instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from chakra_et.converters.format import Format, Head, Identity, View, number
from chakra_et.io.wire_walk import fields_of
from chakra_et.patterns import lazy_pattern

WANTED: Final = "Expected a PyTorch host trace, a Kineto profile, or an ET (protobuf or JSON)."
_RECORD: Final = "Record the run with PyTorch's profiler (export_chrome_trace) instead."
_EXPORT: Final = "Export it first: nsys export --type sqlite FILE."
_UNPACK: Final = "Unpack it first; only gzip and zstd are read as they are."
_WORKLOAD: Final = rb"(?:MICRO|DATA|MODEL|HYBRID_\w+|DISTRIBUTED_INFERENCE)\b[^\n]*\n\s*\d+\s*\n"
_SERVING: Final = rb"(?:COLOCATED|PREFILL|DECODE|EVENT)\b[^\n]*\n\s*\d+\s*\n"
_PROTOBUF_BYTES: Final = 1 << 16
_BYTES: Final = 2
"""The wire type of texts and messages."""
_LAYERS: Final = (
    "It describes layers, but not the number of ranks. `chakra generate text FILE --ranks N -o "
    "DIR` makes an ET of each rank of it."
)
_BATCH: Final = "`chakra generate text FILE --ranks N -o DIR` makes an ET of each rank of it."
_LFS: Final = lazy_pattern(
    rb"version https?://(?:git-lfs|hawser)\.github\.com/\S+\s(?:.*\n)*?size (\d{1,20})\b"
)
_ANNEX: Final = rb"\S{0,4096}/annex/objects/\S{1,4096}\s*\Z"
_PERFETTO: Final = (
    "Export it as JSON (`traceconv json FILE trace.json`), or let the profiler write `.json` or "
    "`.json.gz`."
)


def _begins(name: str, pattern: bytes, remedy: str = WANTED) -> Format:
    """A format that is told by how its files begin."""
    matcher = lazy_pattern(pattern, re.DOTALL)

    def recognise(head: Head) -> int | None:
        return 0 if not head.is_json and matcher.match(head.text) else None

    return Format(name, View.NONE, recognise, remedy)


def _is_called(name: str, remedy: str, *endings: str, begins: bytes | None = None) -> Format:
    """A format whose beginning is not published: only here the name of the file tells."""

    def recognise(head: Head) -> int | None:
        known = begins is not None and head.start.startswith(begins)
        return 0 if known or head.name.lower().endswith(endings) else None

    return Format(name, View.NONE, recognise, remedy)


def _repeats(name: str, is_it: Callable[[bool], bool], remedy: str) -> Format:
    """A protobuf message that repeats its field 1, with or without planes of devices in it."""

    def recognise(head: Head) -> int | None:
        planes = _planes(head.start[:_PROTOBUF_BYTES])
        return 0 if planes is not None and is_it(planes) else None

    return Format(name, View.NONE, recognise, remedy)


def _planes(start: bytes) -> bool | None:
    """Whether a message that repeats its field 1 holds a plane; None for any other content.

    An ET is a sequence of lengths and messages; read as one message, it breaks at once.
    """
    top, whole = fields_of(start)
    if not top or not whole or any(number > 4 or kind != _BYTES for number, kind, _ in top):
        return None
    last = len(top) - 1
    packets = [
        fields_of(content, cut=place == last)
        for place, (number, _, content) in enumerate(top)
        if number == 1
    ]
    if not packets:
        return None
    if not all(fields and fits for fields, fits in packets):
        return None
    return any(_is_plane(fields) for fields, _ in packets)


def _is_plane(fields: list[tuple[int, int, bytes]]) -> bool:
    """Whether a message is named like a plane of devices or threads: `/device:GPU:0`."""
    names = [content for number, kind, content in fields if (number, kind) == (2, 2)]
    return len(names) == 1 and bool(re.match(rb"/(?:host|device):|Task Env", names[0]))


def _pointed_at(head: Head) -> Identity:
    """The size of the file that a pointer stands for."""
    return Identity(detail=f"; the file itself ({number(_LFS, head)} bytes) is not here")


FORMATS: Final = (
    _begins("a workload text (ASTRA-sim 1.0 or SimAI)", _WORKLOAD, _LAYERS),
    _begins("a workload text (LLMServingSim)", _SERVING, _BATCH),
    Format(
        "a Git LFS pointer",
        View.NONE,
        lambda head: None if _LFS.match(head.text) is None else 0,
        "Fetch it with `git lfs pull`.",
        identify=_pointed_at,
    ),
    _begins("a git-annex pointer", _ANNEX, "Fetch the file itself with `git annex get`."),
    _is_called("a report of Nsight Systems", _EXPORT, ".nsys-rep", ".qdrep", ".qdstrm"),
    _is_called("a report of Nsight Compute", _RECORD, ".ncu-rep", begins=b"NVR\x00"),
    _repeats("a Perfetto trace (protobuf)", lambda planes: not planes, _PERFETTO),
    _repeats(
        "an XLA profile (xplane)",
        lambda planes: planes,
        "It holds no PyTorch operations. " + _RECORD,
    ),
    _begins("an MSCCL algorithm (XML)", rb"<algo"),
    # An ET can begin with any byte: then the tag of a field follows.
    _begins("XML or a web page", rb"<[!?/a-zA-Z]"),
    _begins("a program", rb"\x7fELF"),
    _begins("an SQLite database, but not one of Nsight Systems", rb"SQLite format 3"),
    _begins("a Python pickle", rb"\x80[\x02-\x05][^\x08\x0a\x12]"),
    _begins("an XLA module as text", rb"HloModule"),
    _begins("a GOAL schedule", rb"num_ranks"),
    _begins("a Parquet table", rb"PAR1"),
    _begins("a file compressed with xz", rb"\xfd7zXZ", _UNPACK),
    _begins("a file compressed with bzip2", rb"BZh", _UNPACK),
    _begins("a file compressed with lz4", rb"\x04\x22\x4d\x18", _UNPACK),
    _begins("a 7-Zip archive", rb"7z\xbc\xaf\x27\x1c", _UNPACK),
)
