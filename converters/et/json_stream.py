"""Objects one behind another, as tools that print a protobuf file as JSON write them."""

from __future__ import annotations

import json
from typing import Final

_WALKER: Final = json.JSONDecoder(strict=False)
_NODE_KEYS: Final = frozenset({"id", "name", "type", "dataDeps", "ctrlDeps"})


def as_document(data: bytes) -> bytes | None:
    """The objects as one document of this project's JSON form; None if there is only one, or none.

    The first one is the file's metadata, unless it has keys that only nodes have.
    """
    # Latin-1 keeps one character for each byte; all marks of JSON are ASCII.
    text = data.decode("latin-1")
    places = []
    at = 0
    while (at := _skip(text, at)) < len(text):
        try:
            found, end = _WALKER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return None
        if not isinstance(found, dict):
            return None
        places.append((at, end, bool(_NODE_KEYS & found.keys())))
        at = end
    if len(places) < 2:
        return None
    begin, end, is_node = places[0]
    metadata = b"{}" if is_node else data[begin:end]
    nodes = [data[begin:end] for begin, end, _ in (places if is_node else places[1:])]
    head = b'{"format": "chakra-et", "metadata": ' + metadata
    return head + b', "nodes": [' + b",".join(nodes) + b"]}"


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n,":
        at += 1
    return at
