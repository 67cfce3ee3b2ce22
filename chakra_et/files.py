"""Reading and writing execution traces (ETs) in all their forms."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from chakra_et.converters.et import decode_et, decode_json, encode_et, encode_json
from chakra_et.converters.et.forks import undo_fork
from chakra_et.converters.et.json_mapping import JsonError
from chakra_et.converters.et.json_stream import as_document
from chakra_et.converters.et.old_reader import upgrade
from chakra_et.converters.et.old_schema import OldSchemaError
from chakra_et.converters.et.wire import WireError
from chakra_et.errors import ChakraError, FormatError
from chakra_et.io.output import atomic_output
from chakra_et.io.sniff import WORKLOAD_REMEDY, FileKind, sniff
from chakra_et.io.source import head, read_all
from chakra_et.model import Trace

_JSON_NAMES: Final = (".json", ".json.gz", ".json.zst")
_DAMAGED: Final = "The file may have been cut or changed; copy or write it again."
_CONTROL_BYTES: Final = bytes(set(range(0x20)) - set(b"\t\n\r"))
_HEAD_BYTES: Final = 128


def read(path: str | Path) -> Trace:
    """The trace in an ET file: protobuf or JSON, plain or compressed, told by content.

    Raises FormatError, with the place, for a file that is damaged or no ET, and ChakraError for one
    that cannot be read or must be converted first.
    """
    kind = _kind(path)
    if kind not in (FileKind.ET, FileKind.ET_JSON):
        raise ChakraError(
            f"this is a {kind.value}, not an ET",
            path=path,
            remedy=WORKLOAD_REMEDY
            if kind is FileKind.WORKLOAD
            else "`chakra convert`, or chakra_et.convert in Python, links such files to an ET.",
        )
    data = read_all(path)
    try:
        if kind is FileKind.ET:
            return _decode(data)
        return _decode_json(data)
    except OldSchemaError as error:
        remedy = "Make the trace again with a tool that writes schema 0.0.4 or 1.0.0."
        raise FormatError(str(error), path=path, place=_byte(error), remedy=remedy) from error
    except WireError as error:
        raise FormatError(str(error), path=path, place=_byte(error), remedy=_DAMAGED) from error
    except JsonError as error:
        raise FormatError(
            error.problem, path=path, place=error.place or None, remedy=_DAMAGED
        ) from error


def _decode_json(data: bytes) -> Trace:
    """The trace in a JSON file of any form."""
    try:
        return decode_json(data)
    except JsonError:
        document = as_document(data)
        if document is None:
            raise
        return decode_json(document)


def _decode(data: bytes) -> Trace:
    """The trace in a protobuf file of any schema, and of the forks that are known."""
    try:
        trace = decode_et(data)
    except OldSchemaError as error:
        try:
            upgraded, _ = upgrade(data)
            return decode_et(upgraded)
        except OldSchemaError:
            raise
        except WireError:
            raise error from None
    undo_fork(trace)
    return trace


def write(trace: Trace, path: str | Path) -> None:
    """Write a trace, whole or not at all; its name says how.

    `.json` gives JSON, any other name protobuf; a further `.gz` or `.zst` compresses. Raises
    OutputError when the file cannot be written, ChakraError when the trace cannot be told in a
    file.
    """
    with atomic_output(path) as stream:
        try:
            for block in _encoded(trace, Path(path)):
                stream.write(block)
        except ValueError as error:
            raise ChakraError(f"the trace cannot be written: {error}", path=path) from error


def _encoded(trace: Trace, path: Path) -> Iterator[bytes]:
    return encode_json(trace) if path.name.endswith(_JSON_NAMES) else encode_et(trace)


def _kind(path: str | Path) -> FileKind:
    """The kind of a file, also of an ET whose first length is the byte that opens a JSON text.

    JSON holds no control bytes but blanks; an ET has tags and lengths, which are such bytes.
    """
    start = head(path, _HEAD_BYTES)
    if start[:1] in (b"{", b"[") and len(start.translate(None, _CONTROL_BYTES)) < len(start):
        return FileKind.ET
    return sniff(path)


def _byte(error: WireError) -> str:
    return f"byte {error.at}"
