"""Files that people hand over by mistake: what they are, and what to do instead."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from chakra_et.io.wire_walk import fields_of


class Other(NamedTuple):
    """What a file is that is no input, and the remedy, if there is a better one than the usual."""

    what: str
    remedy: str | None = None


_RECORD: Final = "Record the run with PyTorch's profiler (export_chrome_trace) instead."
_UNPACK: Final = "Unpack it first."
_LFS: Final = re.compile(
    rb"version https?://(?:git-lfs|hawser)\.github\.com/\S+\s(?:.*\n)*?size (\d{1,20})\b"
)
_ANNEX: Final = re.compile(rb"\S{0,4096}/annex/objects/\S{1,4096}\s*\Z")
_NSYS: Final = Other("a report of Nsight Systems", _RECORD)
_NCU: Final = Other("a report of Nsight Compute", _RECORD)
_NAMES: Final = {
    ".nsys-rep": _NSYS,
    ".qdrep": _NSYS,
    ".qdstrm": _NSYS,
    ".ncu-rep": _NCU,
}
"""Binary formats whose beginning is not published: only here the name tells."""
_PERFETTO: Final = Other(
    "a Perfetto trace (protobuf)",
    "Export it as JSON (`traceconv json FILE trace.json`), or let the profiler write `.json` or "
    "`.json.gz`.",
)
_XPLANE: Final = Other("an XLA profile (xplane)", "It holds no PyTorch operations. " + _RECORD)
_PICKLE: Final = Other("a Python pickle")
_BEGINNINGS: Final = {
    b"<algo": Other("an MSCCL algorithm (XML)"),
    b"<": Other("XML or a web page"),
    b"\x7fELF": Other("a program"),
    b"SQLite format 3": Other("an SQLite database, such as Nsight Systems exports", _RECORD),
    b"NVR\x00": _NCU,
    b"\x80\x02": _PICKLE,
    b"\x80\x03": _PICKLE,
    b"\x80\x04": _PICKLE,
    b"\x80\x05": _PICKLE,
    b"HloModule": Other("an XLA module as text"),
    b"num_ranks": Other("a GOAL schedule"),
    b"PAR1": Other("a Parquet table"),
    b"\xfd7zXZ": Other("compressed with xz, which is not read here", _UNPACK),
    b"BZh": Other("compressed with bzip2, which is not read here", _UNPACK),
    b"\x04\x22\x4d\x18": Other("compressed with lz4, which is not read here", _UNPACK),
    b"7z\xbc\xaf\x27\x1c": Other("a 7-Zip archive, which is not read here", _UNPACK),
}


def surely_another(start: bytes, path: Path) -> Other | None:
    """What a file is that could be taken for an ET; to be asked before that is done."""
    if pointer := _LFS.match(start):
        size = int(pointer[1])
        what = f"a Git LFS pointer; the file itself ({size} bytes) is not here"
        return Other(what, "Fetch it with `git lfs pull`.")
    if _ANNEX.match(start):
        what = "a git-annex pointer; the file itself is not here"
        return Other(what, "Fetch it with `git annex get`.")
    named = [other for ending, other in _NAMES.items() if path.name.lower().endswith(ending)]
    return named[0] if named else _protobuf(start)


def begins_as_another(start: bytes) -> Other | None:
    """What a file is that is neither JSON nor an ET; None if nobody here knows."""
    known = [other for beginning, other in _BEGINNINGS.items() if start.startswith(beginning)]
    return known[0] if known else None


def _protobuf(start: bytes) -> Other | None:
    """Perfetto and xplane: one message that repeats its field 1.

    An ET is a sequence of lengths and messages; read as one message, it breaks at once.
    """
    top, whole = fields_of(start)
    packets = [fields_of(content) for number, kind, content in top if (number, kind) == (1, 2)]
    if not packets or not whole or any(number > 4 for number, _, _ in top):
        return None
    if not all(fields and fits for fields, fits in packets):
        return None
    return _XPLANE if any(_is_plane(fields) for fields, _ in packets) else _PERFETTO


def _is_plane(fields: list[tuple[int, int, bytes]]) -> bool:
    """Whether a message is named like a plane of devices or threads: `/device:GPU:0`."""
    names = [content for number, kind, content in fields if (number, kind) == (2, 2)]
    return len(names) == 1 and bool(re.match(rb"/(?:host|device):|Task Env", names[0]))
