"""Protobuf messages as JSON and back, by protobuf's JSON mapping.

Written from the public description at https://protobuf.dev/programming-guides/json/. What the
mapping cannot hold stands as base64 of its bytes on the wire under `unknownFields`: fields that the
schema does not name, text that is not UTF-8, a NaN with other bits than the usual ones.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from chakra_et.converters.et.attribute_codec import SCALARS
from chakra_et.converters.et.wire import (
    BYTES,
    VARINT,
    WireError,
    field_bytes,
    read_tag,
    read_varint,
    skip,
    tag,
)
from chakra_et.definitions import Kind
from chakra_et.model.attribute_values import INTEGER_RANGES

UNKNOWN: Final = "unknownFields"

_INFINITIES: Final = {math.inf: "Infinity", -math.inf: "-Infinity"}
_LARGEST_FLOAT: Final = float(np.finfo(np.float32).max)
_REALS: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_AS_TEXT: Final = frozenset(kind for kind in INTEGER_RANGES if kind.name.endswith("64"))


class JsonError(ValueError):
    """JSON that is no execution trace; `place` says where, as in `nodes[17].attr[3]`."""

    def __init__(self, problem: str, place: str) -> None:
        super().__init__(f"{place}: {problem}" if place else problem)
        self.problem = problem
        self.place = place


class Enumeration(NamedTuple):
    """Names of numbers."""

    names: Mapping[int, str]


class Field(NamedTuple):
    """A field of a message. One of a `choice` is present even where it is zero."""

    name: str
    type: Kind | Enumeration | Message
    repeated: bool = False
    choice: str = ""


class Message:
    """The fields of a message by number, and the numbers by name.

    An `exact` one becomes JSON only if that gives the same bytes again.
    """

    def __init__(self, fields: Mapping[int, Field], *, exact: bool = False) -> None:
        self.fields = fields
        self.exact = exact
        self.numbers = {field.name: number for number, field in fields.items()}
        for number, field in fields.items():
            self.numbers[re.sub("([A-Z])", r"_\1", field.name).lower()] = number


class _NoJson(Exception):  # noqa: N818 - no error: such a value goes to unknownFields
    """The mapping has no JSON for a value."""


# ---------------------------------------------------------------------------------------------
# From the wire


def to_json(
    message: Message, data: bytes, attribute: Callable[[bytes], Any] | None = None
) -> dict[str, Any]:
    """The message in `data` as a JSON object; `attribute` may make those of its field `attr`."""
    found: dict[str, Any] = {}
    unknown = b""
    at, end = 0, len(data)
    while at < end:
        start = at
        number, wire_type, at = read_tag(data, at, end)
        behind = skip(data, at, end, wire_type)
        try:
            field = message.fields.get(number)
            is_attribute = field is not None and field.name == "attr" and wire_type == BYTES
            if attribute is not None and is_attribute:
                found.setdefault("attr", []).append(attribute(_content(data[at:behind])))
            else:
                _add(found, field, wire_type, data[at:behind])
        except _NoJson:
            unknown += data[start:behind]
        at = behind
    if unknown:
        found[UNKNOWN] = base64.b64encode(unknown).decode()
    return found


def gives_back(message: Message, value: dict[str, Any], data: bytes) -> bool:
    """Whether the JSON object `value` becomes `data` again, byte for byte."""
    try:
        return from_json(message, value, "") == data
    except JsonError:
        return False


def _add(found: dict[str, Any], field: Field | None, wire_type: int, data: bytes) -> None:
    if field is None or (field.name in found and not field.repeated):
        raise _NoJson
    own_type = _wire_type(field.type)
    content = _content(data) if wire_type == BYTES else data
    if field.repeated and wire_type == BYTES and own_type != BYTES:
        found.setdefault(field.name, []).extend(_unpacked(field.type, content))
    elif wire_type != own_type:
        raise _NoJson
    elif field.repeated:
        value = _value_to_json(field.type, content)
        found.setdefault(field.name, []).append(value)
    else:
        found[field.name] = _value_to_json(field.type, content)


def _wire_type(kind: Kind | Enumeration | Message) -> int:
    if isinstance(kind, Kind):
        return SCALARS[kind].wire_type
    return VARINT if isinstance(kind, Enumeration) else BYTES


def _content(data: bytes) -> bytes:
    length, at = read_varint(data, 0, len(data))
    return data[at : at + length]


def _unpacked(kind: Kind | Enumeration | Message, data: bytes) -> list[Any]:
    values = []
    at = 0
    while at < len(data):
        behind = skip(data, at, len(data), _wire_type(kind))
        values.append(_value_to_json(kind, data[at:behind]))
        at = behind
    return values


def _value_to_json(kind: Kind | Enumeration | Message, data: bytes) -> Any:
    if isinstance(kind, Message):
        found = to_json(kind, data)
        if kind.exact and not gives_back(kind, found, data):
            raise _NoJson
        return found
    if isinstance(kind, Enumeration):
        value = SCALARS[Kind.INT32].decode(read_varint(data, 0, len(data))[0])
        return kind.names.get(value, value)
    if kind is Kind.STRING:
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise _NoJson from None
    if kind is Kind.BYTES:
        return base64.b64encode(data).decode()
    scalar = SCALARS[kind]
    if scalar.wire_type == VARINT:
        data_value: Any = scalar.decode(read_varint(data, 0, len(data))[0])
    else:
        data_value = scalar.decode(data)
    if kind in (Kind.DOUBLE, Kind.FLOAT):
        return _real_to_json(kind, data_value, data)
    return str(data_value) if kind in _AS_TEXT else data_value


def _real_to_json(kind: Kind, value: float, data: bytes) -> float | str:
    if value != value:
        if data != SCALARS[kind].encode(math.nan):
            raise _NoJson
        return "NaN"
    if value in _INFINITIES:
        return _INFINITIES[value]
    # A float of 32 bits has a shorter form than the double that equals it.
    short = float(str(np.float32(value))) if kind is Kind.FLOAT else value
    usable = abs(short) <= _LARGEST_FLOAT or kind is Kind.DOUBLE
    return short if usable and SCALARS[kind].encode(short) == data else value


# ---------------------------------------------------------------------------------------------
# To the wire


def from_json(message: Message, value: Any, place: str) -> bytes:
    """The message that the JSON object `value` stands for. Raises JsonError."""
    if not isinstance(value, dict):
        raise JsonError(f"expected an object, got {_kind_of(value)}", place)
    pieces: dict[int, bytes] = {}
    chosen: dict[str, str] = {}
    unknown = b""
    for name, item in value.items():
        here = f"{place}.{name}" if place else name
        if name == UNKNOWN:
            unknown = _unknown_fields(item, here)
            continue
        number = message.numbers.get(name)
        if number is None:
            raise JsonError("unknown field", here)
        if item is None:
            continue
        field = message.fields[number]
        if number in pieces or chosen.setdefault(field.choice or name, name) != name:
            raise JsonError("a second value; only one is allowed", here)
        pieces[number] = _field_from_json(number, field, item, here)
    return b"".join(pieces[number] for number in sorted(pieces)) + unknown


def _unknown_fields(value: Any, place: str) -> bytes:
    data = _bytes(value, place)
    at = 0
    try:
        while at < len(data):
            _, wire_type, at = read_tag(data, at, len(data))
            at = skip(data, at, len(data), wire_type)
    except WireError as error:
        raise JsonError(f"not the fields of a message: {error}", place) from None
    return data


def _field_from_json(number: int, field: Field, value: Any, place: str) -> bytes:
    if not field.repeated:
        data = _value_from_json(field.type, value, place)
        if not isinstance(field.type, Message) and not field.choice and _is_zero(field.type, data):
            return b""
        return _with_tag(number, field.type, data)
    if not isinstance(value, list):
        raise JsonError(f"expected a list, got {_kind_of(value)}", place)
    items = [_value_from_json(field.type, v, f"{place}[{i}]") for i, v in enumerate(value)]
    if _wire_type(field.type) == BYTES:
        return b"".join(field_bytes(number, item) for item in items)
    return field_bytes(number, b"".join(items)) if items else b""


def _with_tag(number: int, kind: Kind | Enumeration | Message, data: bytes) -> bytes:
    wire_type = _wire_type(kind)
    return field_bytes(number, data) if wire_type == BYTES else tag(number, wire_type) + data


def _is_zero(kind: Kind | Enumeration, data: bytes) -> bool:
    return not data.strip(b"\0") if _wire_type(kind) != BYTES else not data


def _value_from_json(kind: Kind | Enumeration | Message, value: Any, place: str) -> bytes:
    if isinstance(kind, Message):
        return from_json(kind, value, place)
    if isinstance(kind, Enumeration):
        named = {name: number for number, name in kind.names.items()}
        if isinstance(value, str):
            if value not in named:
                raise JsonError(f"unknown value {value!r}", place)
            value = named[value]
        return SCALARS[Kind.INT32].encode(_integer(Kind.INT32, value, place))
    if kind in INTEGER_RANGES:
        return SCALARS[kind].encode(_integer(kind, value, place))
    if kind in (Kind.DOUBLE, Kind.FLOAT):
        return _real(kind, value, place)
    if kind is Kind.BYTES:
        return _bytes(value, place)
    wanted, word = (bool, "true or false") if kind is Kind.BOOL else (str, "a string")
    if not isinstance(value, wanted):
        raise JsonError(f"expected {word}, got {_kind_of(value)}", place)
    return SCALARS[kind].encode(value)


def _integer(kind: Kind, value: Any, place: str) -> int:
    whole_text = isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value)
    if whole_text or (isinstance(value, float) and value.is_integer()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise JsonError(f"expected an integer, got {_kind_of(value)}", place)
    low, high = INTEGER_RANGES[kind]
    if not low <= value <= high:
        raise JsonError(f"{value} is outside {kind.name.lower()}", place)
    return value


def _real(kind: Kind, value: Any, place: str) -> bytes:
    if isinstance(value, str):
        try:
            value = _REALS[value] if value in _REALS else float(re.sub("[^0-9.eE+-]", "x", value))
        except ValueError:
            raise JsonError("expected a number, got a text", place) from None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise JsonError(f"expected a number, got {_kind_of(value)}", place)
    try:
        return SCALARS[kind].encode(value)
    except (OverflowError, struct.error):
        raise JsonError(f"{value} is outside {kind.name.lower()}", place) from None


def _bytes(value: Any, place: str) -> bytes:
    if not isinstance(value, str):
        raise JsonError(f"expected base64 text, got {_kind_of(value)}", place)
    text = value.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise JsonError("invalid base64", place) from None


def _kind_of(value: Any) -> str:
    words = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    if value is None:
        return "null"
    return words.get(type(value), f"{value!r}")
