"""The schema's sources as Python values: et_def.proto's enums and attributes.toml."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

ROOT = Path(__file__).resolve().parent.parent.parent
SCHEMA = ROOT / "schema"

_VALUE = re.compile(r"^(\w+) = (\d+);$")
_MEMBER = re.compile(r"^ +\w+ (\w+) = (\d+);$", re.MULTILINE)


class SchemaError(Exception):
    """The schema's sources contradict themselves."""


class Attribute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One entry of the registry."""

    name: str
    scope: Literal["node", "trace"]
    group: str
    kind: str
    accepts: str
    unit: Literal["bytes", "ns", "ms", "us", "FLOP", "id", "rank", "elements", ""]
    meaning: str
    writers: list[str]
    readers: list[str]
    since: str


class EdgeKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why one node waits for another."""

    name: str
    meaning: str


class Registry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """attributes.toml."""

    version: str
    kinds: dict[str, list[str]]
    edge_kind: list[EdgeKind]
    attribute: list[Attribute]


class EnumValue(msgspec.Struct, frozen=True):
    """One value of an enum in the .proto."""

    name: str
    number: int
    comment: str


def load(path: Path = SCHEMA / "attributes.toml") -> Registry:
    """Read the registry and see that it agrees with itself and with the .proto."""
    registry = msgspec.convert(_toml(path), Registry)
    _check(registry, attribute_kinds())
    return registry


def enum(name: str, proto: str | None = None) -> list[EnumValue]:
    """The values of an enum, each with the comment before it."""
    return _values(_block(rf"enum {name}", proto))


def nested_enum(message: str, name: str, proto: str) -> list[EnumValue]:
    """The values of an enum within a message."""
    inside = _block(rf"message {message}", proto).partition(f"enum {name} {{\n")[2]
    return _values(inside.partition("}")[0])


def message(name: str) -> str:
    """The text of a message of et_def.proto, between its braces."""
    return _block(rf"message {name}", None)


def _values(block: str) -> list[EnumValue]:
    values, comment = [], ""
    for line in block.splitlines():
        text = line.strip()
        if text.startswith("//"):
            comment = f"{comment} {text[2:].strip()}".strip()
        elif match := _VALUE.match(text):
            values.append(EnumValue(match[1], int(match[2]), comment))
            comment = ""
    return values


def attribute_kinds(proto: str | None = None) -> dict[str, int]:
    """The kinds of an attribute's value, without `_val`, and their field numbers."""
    oneof = _block(r"message AttributeProto", proto).partition("oneof value {")[2]
    return {name.removesuffix("_val"): int(number) for name, number in _MEMBER.findall(oneof)}


def _toml(path: Path) -> dict[str, Any]:
    library = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    loads: Callable[[str], dict[str, Any]] = library.loads
    return loads(path.read_text("utf-8"))


def _block(head: str, proto: str | None) -> str:
    text = (SCHEMA / "et_def.proto").read_text("utf-8") if proto is None else proto
    match = re.search(rf"^{head} \{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL)
    if match is None:
        raise SchemaError(f"et_def.proto has no `{head}`")
    return match[1]


def _check(registry: Registry, kinds: dict[str, int]) -> None:
    seen = set()
    for attribute in registry.attribute:
        where = f"attribute {attribute.name!r} of scope {attribute.scope}"
        if (attribute.scope, attribute.name) in seen:
            raise SchemaError(f"{where} stands twice")
        seen.add((attribute.scope, attribute.name))
        accepted = registry.kinds.get(attribute.accepts, [])
        if unknown := {attribute.kind, *accepted} - kinds.keys():
            raise SchemaError(f"{where} names unknown kinds: {', '.join(sorted(unknown))}")
        if attribute.kind not in accepted:
            raise SchemaError(f"{where} does not accept its own kind {attribute.kind}")
