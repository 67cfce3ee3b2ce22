"""JSON for people and programs outside."""

from __future__ import annotations

from typing import Any

import msgspec

from chakra_et.shown import encodable


def to_json(content: Any, indent: int = 2) -> bytes:
    """What msgspec can encode, as JSON on several lines; half surrogates are written as escapes.

    Names of files and nodes that are no UTF-8 have such.
    """
    try:
        encoded = msgspec.json.encode(content)
    except UnicodeEncodeError:
        encoded = msgspec.json.encode(encodable(msgspec.to_builtins(content)))
    return msgspec.json.format(encoded, indent=indent) + b"\n"
