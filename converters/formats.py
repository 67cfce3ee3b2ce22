"""The registry of formats: all that files are told by, read and written with.

A new format is a folder with a `format.py`, and a line here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NoReturn

from chakra_et.converters import foreign, own
from chakra_et.converters.et.format import FORMAT as ET
from chakra_et.converters.et.format import JSON_FORMAT as ET_JSON
from chakra_et.converters.foreign import WANTED
from chakra_et.converters.format import Format, Head
from chakra_et.converters.kineto.format import FORMAT as KINETO
from chakra_et.converters.kineto.format import OTHER as OTHER_CHROME
from chakra_et.converters.linked.format import FORMAT as LINKED
from chakra_et.converters.nsight.format import FORMAT as NSIGHT
from chakra_et.converters.pytorch.format import FORMAT as PYTORCH
from chakra_et.errors import FormatError
from chakra_et.io.source import blocks, head

FORMATS: Final[tuple[Format, ...]] = (
    *own.FORMATS,
    LINKED,
    PYTORCH,
    OTHER_CHROME,
    KINETO,
    ET_JSON,
    NSIGHT,
    *foreign.FORMATS,
    # Told by two bytes, where others have more to show.
    ET,
)
"""Of two formats with evidence at the same place, the first one counts."""
HEAD_BYTES: Final = 1 << 20
_BY_NAME: Final = {form.name: form for form in FORMATS}
_COMPRESSIONS: Final = ("", ".gz", ".zst")


def by_name(name: str) -> Format:
    """The format of that name."""
    return _BY_NAME[name]


def by_suffix(path: Path) -> Format:
    """The format that the name of an output asks for: protobuf, unless it names another one."""
    for form in FORMATS:
        if path.name.endswith(tuple(s + c for s in form.suffixes for c in _COMPRESSIONS)):
            return form
    return ET


def look(path: Path) -> tuple[Format, Head]:
    """The format of a file, by its content, and how it begins.

    Raises FormatError for a file that no format recognises.
    """
    start = Head(head(path, HEAD_BYTES), path.name)
    found = [(place, form) for form in FORMATS if (place := form.recognise(start)) is not None]
    if not found:
        _refuse(path, start)
    return min(found, key=lambda item: item[0])[1], start


def _refuse(path: Path, start: Head) -> NoReturn:
    """Say what is known of a file that no format recognises; if it is damaged, that."""
    taken = 0
    for block in blocks(path):
        taken += len(block)
        if taken >= HEAD_BYTES:
            break
    if not start.text:
        what = "the file holds only white space" if start.start else "the file is empty"
        remedy = "The recording did not finish; record it again. " + WANTED
        raise FormatError(what, path=path, remedy=remedy)
    what = "neither JSON nor an ET in protobuf"
    if start.is_json and start.text[:1] == b"[":
        what = "a JSON list, but not of profiler events"
    elif start.is_json:
        what = (
            'JSON of an unknown kind: neither "nodes", "traceEvents" nor '
            '"workload_graph" is among its first keys'
        )
    raise FormatError(what, path=path, remedy=WANTED)
