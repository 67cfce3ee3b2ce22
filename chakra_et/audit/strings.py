"""Every text that a trace holds, and where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.anonymise.pseudonyms import PSEUDONYM, PUBLIC
from chakra_et.anonymise.rules import PHASES
from chakra_et.anonymise.values import TYPE
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.io.json_text import from_json
from chakra_et.model import Trace
from chakra_et.version import PRODUCER

_PLAIN: Final = re.compile(
    r"(device|stream)( -?\d+)*|(\d+|gap):\d+( (\d+|gap):\d+)*|[0-9 ,:;*+.\-]*|\[[\[\]0-9, -]*\]"
)
"""Texts of numbers alone, such as those of `sync_on` and `time_parts`. Elsewhere they may say a
shape, a date or a number of somebody."""
_NUMBERS: Final = ("attribute sync_on", "attribute time_parts", "attribute edge_kinds")
_PATH: Final = re.compile(r"(?<![\w.])/(?:[\w.+-]+/)+[\w.+-]*|[A-Za-z]:\\\\?[\w.+-]+|~/[\w.+-]+")
_HOST: Final = re.compile(
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.]+|\bhttps?://\S+|"
    r"(?<![a-z0-9.-])(?:[a-z0-9-]+\.)+(?:com|org|net|io|ai|edu|gov|local|internal|corp|lan)\b",
    re.IGNORECASE,
)
_FEW_DIGITS: Final = 4
"""Numbers of groups such as `0` say nothing."""
_GROUP_KEYS: Final = frozenset(("pg_name", "pg_desc", "ranks", "size", "source", "inferred"))
_WORDS: Final = frozenset(
    {kind.name.lower() for kind in NodeType} | {kind.name.lower() for kind in CollectiveType}
    | PHASES | {"other", "user_annotation", PRODUCER}
)  # fmt: skip


@dataclass(frozen=True)
class Text:
    """A text, the row of the first node that has it (None for the trace), and what it is."""

    text: str
    row: int | None
    what: str
    count: int


def texts(trace: Trace) -> Iterator[Text]:
    """Every distinct text of a trace by its place: names, attributes, inputs, facts."""
    nodes = trace.nodes
    names, first, counts = np.unique(nodes.name_code, return_index=True, return_counts=True)
    for code, row, count in zip(names.tolist(), first.tolist(), counts.tolist(), strict=True):
        yield Text(nodes.names[code], row, "name", count)
    for column in nodes.attributes.columns:
        found: dict[str, tuple[int, int]] = {}
        for row, value in zip(column.rows.tolist(), column.values, strict=True):
            for text in _said(value):
                at, count = found.get(text, (row, 0))
                found[text] = at, count + 1
        for text, (at, count) in found.items():
            yield Text(text, at, f"attribute {column.key.name}", count)
        if column.key.doc and len(column.rows):
            where = f"doc of attribute {column.key.name}"
            yield Text(column.key.doc, int(column.rows[0]), where, len(column.rows))
    for side, codes in (("inputs", nodes.input_code), ("outputs", nodes.output_code)):
        found_codes = np.unique(codes, return_index=True, return_counts=True)
        for code, row, count in zip(*(part.tolist() for part in found_codes), strict=True):
            held = nodes.texts[code] if code >= 0 else ()
            for part, data in zip(("values", "shapes", "types"), held, strict=False):
                if data and data != b"[]":
                    text = data.decode("utf-8", "backslashreplace")
                    yield Text(text, row, f"{part} of {side}", count)
    for attribute in trace.metadata.attributes:
        for text in _said(attribute.value):
            yield Text(text, None, f"fact {attribute.key.name}", 1)


def is_told(text: Text) -> bool:
    """Whether a text says something that no list of public words and pseudonyms holds."""
    if text.what.startswith(("shapes", "types")):
        return not (_PLAIN.fullmatch(text.text) or _known_types(text.text))
    if text.what == "fact process_groups":
        return any(not _is_public(name) for name in _names_of_groups(text.text))
    if text.what in _NUMBERS and _PLAIN.fullmatch(text.text):
        return False
    return not _is_public(text.text)


def is_path(text: str) -> str | None:
    """The path, host, address or account in a text, if there is one."""
    found = _PATH.search(text) or _HOST.search(text)
    return found[0] if found else None


def _is_public(text: str) -> bool:
    return (
        text in PUBLIC
        or text.lower() in _WORDS
        or bool(PSEUDONYM.fullmatch(text))
        or (text.isascii() and len(text) <= _FEW_DIGITS and text.isdigit())
    )


def _known_types(text: str) -> bool:
    try:
        items = from_json(text)
    except msgspec.DecodeError:
        return False
    return isinstance(items, list) and all(
        isinstance(item, str) and (item == "Other" or TYPE.fullmatch(item)) for item in items
    )


def _names_of_groups(text: str) -> list[str]:
    try:
        groups = from_json(text)
    except msgspec.DecodeError:
        return [text]
    found, waiting = [], [groups]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, list):
            waiting += item
        elif isinstance(item, dict):
            waiting += [*item.values(), *(key for key in item if key not in _GROUP_KEYS)]
    return found


def _said(value: Any) -> list[str]:
    """The texts in a value of an attribute."""
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, bytes):
        return [value.decode("utf-8", "backslashreplace")] if value else []
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _said(item)]
    return []
