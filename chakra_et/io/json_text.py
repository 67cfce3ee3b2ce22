"""JSON for people and programs outside, and from them."""

from __future__ import annotations

from typing import Any, TypeVar, overload

import msgspec

from chakra_et.shown import encodable

T = TypeVar("T")


@overload
def from_json(text: bytes | str) -> Any: ...
@overload
def from_json(text: bytes | str, type: type[T]) -> T: ...
def from_json(text: bytes | str, type: Any = Any) -> Any:
    """What a JSON text says, of a type that msgspec can decode.

    Raises msgspec.DecodeError for any that it cannot, also for one that is nested too deep.
    """
    try:
        return msgspec.json.decode(text, type=type)
    except RecursionError as error:
        raise msgspec.DecodeError("nested too deep") from error
    except UnicodeError as error:
        raise msgspec.DecodeError(f"not UTF-8: {error}") from error


def to_json(content: Any, indent: int = 2) -> bytes:
    """What msgspec can encode, as JSON on several lines; half surrogates are written as escapes.

    Names of files and nodes that are no UTF-8 have such.
    """
    try:
        encoded = msgspec.json.encode(content)
    except UnicodeEncodeError:
        encoded = msgspec.json.encode(encodable(msgspec.to_builtins(content)))
    return msgspec.json.format(encoded, indent=indent) + b"\n"
