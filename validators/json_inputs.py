"""Host traces, profiles and JSON ETs against their JSON Schemas.

A file of a hundred megabytes has a few dozen shapes of records. Every record is looked at for its
shape (which keys, with which types of values); of each shape, the first few go through the schema.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from chakra_et.io.json_text import from_json
from chakra_et.io.memory import collection_paused
from chakra_et.schema_files import schema_file
from chakra_et.validators.finding import Finding, Hits

OF_EACH_SHAPE: Final = 3
"""Records of one shape that are checked."""
_MOST_ERRORS: Final = 1000
_ITEMS: Final = ("nodes", "traceEvents", "workload_graph")


@dataclass
class JsonFacts:
    """What a schema says of a JSON file."""

    path: Path
    schema: str
    """The name of the schema."""
    errors: list[tuple[str, str]]
    """Where inside the file (a JSON pointer) and what is wrong."""
    checked: int
    """Records that went through the schema."""
    records: int

    def hits(self) -> Hits:
        """A hit for each error."""
        path = str(self.path)
        # Of what is wrong with the whole document, there is no place to tell.
        told = [f"{where}: {what}" if where else what for where, what in self.errors]
        return Hits(len(told), lambda i: Finding(told[i], path=path))


def json_facts(path: Path, schema: str, data: bytes) -> JsonFacts:
    """Check the JSON document `data` of the file at `path` against a schema of `schema/`."""
    try:
        with collection_paused():
            document = from_json(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return JsonFacts(path, schema, [("", f"not valid JSON: {error}")], 0, 0)
    if isinstance(document, list):
        # A bare list of events is a profile too.
        document = {"traceEvents": document}
    key = next((k for k in _ITEMS if isinstance(document.get(k), list)), None)
    items = document[key] if key is not None else []
    chosen = sample(items)
    reduced = dict(document)
    if key is not None:
        reduced[key] = [items[i] for i in chosen]
    errors: list[tuple[str, str]] = []
    for found in _validator(schema).iter_errors(reduced):
        where = list(found.absolute_path)
        if key is not None and len(where) > 1 and where[0] == key:
            where[1] = chosen[int(where[1])]
        pointer = "".join(f"/{part}" for part in where) or "/"
        errors.append((pointer, _best(found)))
        if len(errors) == _MOST_ERRORS:
            break
    return JsonFacts(path, schema, errors, len(chosen), len(items))


def sample(items: list[Any]) -> list[int]:
    """Places of the first few items of each shape."""
    seen: defaultdict[Any, int] = defaultdict(int)
    chosen = []
    for place, item in enumerate(items):
        mark = _shape(item)
        if seen[mark] < OF_EACH_SHAPE:
            seen[mark] += 1
            chosen.append(place)
    return chosen


def _shape(value: Any) -> Any:
    """What tells the shape of a record: keys and types, and the values of short keys like `ph`."""
    if not isinstance(value, dict):
        return type(value)
    parts: list[Any] = []
    for key, item in value.items():
        if type(item) is dict:
            parts.append((key, tuple((k, type(v)) for k, v in item.items())))
        elif type(item) is list:
            parts.append((key, list, frozenset(map(_inner, item))))
        elif key == "ph":
            parts.append((key, item))
        else:
            parts.append((key, type(item)))
    return tuple(parts)


def _inner(item: Any) -> Any:
    """The shape of an item of a list in a record: of a named one, such as an attribute, by name."""
    if type(item) is dict:
        name = item.get("name")
        named = name if type(name) is str else None
        return named, tuple(item), tuple(map(type, item.values()))
    return type(item)


def _validator(schema: str) -> Any:
    # It takes 50 ms to import, and only JSON files need it.
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema_file(schema).read_text("utf-8")))


def _best(error: Any) -> str:
    """The message of an error; of alternatives that all fail, the nearest one's."""
    if error.context:
        nearest = max(error.context, key=lambda e: len(e.absolute_path))
        return str(nearest.message)[:300]
    return str(error.message)[:300]
