"""The records of an ET file, counted without being read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from chakra_et.converters.et import fields
from chakra_et.converters.et.first_record import NoMetadataError, require_metadata
from chakra_et.converters.et.wire import BYTES, WireError, read_tag, read_varint, skip
from chakra_et.file_facts import FileFacts
from chakra_et.kernel import kernel

_ZEROS: Final = re.compile(rb"\0+")
_COMPRESSION: Final = {b"\x1f\x8b": "gzip", b"\x28\xb5": "zstd", b"PK": "a zip archive"}


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
        if facts.records:
            # Most records: a length of one or two bytes, which is not 0.
            at = _pass_short(facts, data, at)
            if at == size:
                return
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


def _pass_short(facts: FileFacts, data: bytes, at: int) -> int:
    """Count whole records of a short length, and where the first other one begins."""
    module = kernel()
    count, end = module.pass_short(data, at) if module else _count_short(data, at)
    facts.records += count
    if count:
        facts.whole = end
    return end


def _count_short(data: bytes, at: int) -> tuple[int, int]:
    last, count = len(data) - 2, 0
    while at < last:
        low, high = data[at], data[at + 1]
        if low < 0x80:
            end = at + 1 + low if low else at
        else:
            end = at + 2 + (low & 0x7F | high << 7) if 0 < high < 0x80 else at
        if end == at or end > last + 2:
            break
        count, at = count + 1, end
    return count, at


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
        require_metadata(data, at, end)
    except NoMetadataError as error:
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
