"""What the bytes of an ET file tell before anybody asks what they mean."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from chakra_et.converters.et import fields
from chakra_et.converters.et.old_schema import OldSchemaError, refuse_old_schema
from chakra_et.converters.et.wire import BYTES, WireError, read_tag, read_varint, skip
from chakra_et.validators.finding import Finding, Hits

NAME: Final = re.compile(r"(?P<prefix>.+)\.(?P<rank>\d+)\.et")
"""The name of a file that simulators open: prefix and rank."""

_ZEROS: Final = re.compile(rb"\0+")
_COMPRESSION: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd", b"PK": "a zip archive"}


@dataclass
class FileFacts:
    """The records of an ET file, counted without being read, and what is odd about them."""

    path: Path
    size: int
    compression: str | None = None
    writable: bool = True
    records: int = 0
    """Whole records, the metadata included."""
    whole: int = 0
    """Where the last whole record ends."""
    empty: int = 0
    """How many records have no content, behind the first one."""
    first_empty: int = 0
    """Where the first of these is."""
    empty_metadata: bool = False
    version: str | None = None
    """The version that the metadata tells; None if there is no metadata."""
    no_metadata: str | None = None
    """Why the first record is no metadata of today."""
    broken: tuple[int, str] | None = None
    """Where and why the bytes are no sequence of records."""
    cut: tuple[int, int] | None = None
    """Where the last record begins and how many bytes of it are missing."""

    def hit(self, evidence: str) -> Hits:
        """One hit about the file."""
        match = NAME.fullmatch(self.path.name)
        rank = int(match["rank"]) if match else None
        return Hits.of([Finding(evidence, rank, path=str(self.path))])


def file_facts(path: Path, raw: bytes, data: bytes) -> FileFacts:
    """The facts of the file at `path` with the bytes `raw`, decompressed `data`."""
    facts = FileFacts(
        path, len(data), _COMPRESSION.get(raw[:2]), not path.exists() or os.access(path, os.W_OK)
    )
    _walk(facts, data)
    return facts


def _walk(facts: FileFacts, data: bytes) -> None:
    """Step from record to record."""
    at, size = 0, len(data)
    while at < size:
        try:
            length, start = read_varint(data, at, size)
        except WireError as error:
            if size - at < 5:
                facts.cut = (at, 1)
            else:
                facts.broken = (at, f"the length of a record: {error}")
            return
        if length >= 1 << 31:
            facts.broken = (at, f"a record of {length} bytes, which no message can have")
            return
        end = start + length
        if end > size:
            facts.cut = (at, end - size)
            return
        if facts.records == 0:
            _first(facts, data, start, end)
        elif length == 0:
            at = _pass_empty(facts, data, at)
            continue
        facts.records += 1
        at = facts.whole = end


def _pass_empty(facts: FileFacts, data: bytes, at: int) -> int:
    """Count the empty records that stand here, and where they end; zeros come by the gigabyte."""
    zeros = _ZEROS.match(data, at)
    end = zeros.end() if zeros else at + 1
    if not facts.empty:
        facts.first_empty = at
    facts.empty += end - at
    facts.records += end - at
    facts.whole = end
    return end


def _first(facts: FileFacts, data: bytes, at: int, end: int) -> None:
    """The record that has to be the metadata."""
    facts.empty_metadata = at == end
    try:
        refuse_old_schema(data, at, end)
    except OldSchemaError as error:
        facts.no_metadata = str(error)
        return
    except WireError as error:
        facts.broken = (at, f"the metadata: {error}")
        return
    facts.version = ""
    try:
        while at < end:
            number, wire_type, start = read_tag(data, at, end)
            behind = skip(data, start, end, wire_type)
            if (number, wire_type) == (fields.METADATA_VERSION, BYTES):
                length, text = read_varint(data, start, end)
                facts.version = data[text : text + length].decode("utf-8", "replace")
            at = behind
    except WireError as error:
        facts.broken = (at, f"the metadata: {error}")
