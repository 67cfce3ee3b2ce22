"""Reading files of execution traces: protobuf of any schema, and JSON of any form.

What few files need is imported where one does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from chakra_et.converters.et.decoder import decode_et
from chakra_et.converters.et.first_record import OldSchemaError
from chakra_et.converters.et.forks import undo_fork
from chakra_et.converters.et.wire import WireError
from chakra_et.errors import FormatError
from chakra_et.io.source import read_all
from chakra_et.model import Trace

_DAMAGED: Final = "The file may have been cut or changed; copy or write it again."


def read_et(path: Path) -> Trace:
    """The trace in a protobuf file of any schema, and of the forks that are known."""
    data = read_all(path)
    try:
        return _decode(data)
    except OldSchemaError as error:
        remedy = "Make the trace again with a tool that writes schema 0.0.4 or 1.0.0."
        raise FormatError(str(error), path=path, place=_byte(error), remedy=remedy) from error
    except WireError as error:
        raise FormatError(str(error), path=path, place=_byte(error), remedy=_DAMAGED) from error


def _decode(data: bytes) -> Trace:
    try:
        trace = decode_et(data)
    except OldSchemaError as error:
        from chakra_et.converters.et.old_reader import upgrade

        try:
            upgraded, _ = upgrade(data)
            return decode_et(upgraded)
        except OldSchemaError:
            raise
        except WireError:
            raise error from None
    undo_fork(trace)
    return trace


def _byte(error: WireError) -> str:
    return f"byte {error.at}"


def read_et_json(path: Path) -> Trace:
    """The trace in a JSON file of any form."""
    from chakra_et.converters.et.json_mapping import JsonError

    data = read_all(path)
    try:
        return _decode_json(data)
    except JsonError as error:
        raise FormatError(
            error.problem, path=path, place=error.place or None, remedy=_DAMAGED
        ) from error
    except WireError as error:
        raise FormatError(str(error), path=path, place=_byte(error), remedy=_DAMAGED) from error


def _decode_json(data: bytes) -> Trace:
    from chakra_et.converters.et.json_form import decode_json
    from chakra_et.converters.et.json_mapping import JsonError
    from chakra_et.converters.et.json_stream import as_document

    try:
        return decode_json(data)
    except JsonError:
        document = as_document(data)
        if document is None:
            raise
        return decode_json(document)
