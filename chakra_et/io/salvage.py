"""What stands around the records of a damaged document, as far as it can be read."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from chakra_et.io.mend import Mender, MendError
from chakra_et.io.mended_array import AFTER
from chakra_et.io.repairs import Repairs
from chakra_et.patterns import lazy_pattern

MEMBER: Final = "metadata beyond repair"
MISSING_END: Final = "metadata that was cut off"
_FAILURES: Final = 100
"""After so many members that cannot be read, no more are tried."""

_WALKER: Final = json.JSONDecoder(strict=False)
_MEMBER: Final = lazy_pattern(rb'[\s,]*"([^"\\\x00-\x1f]{1,200})"\s{0,64}:\s{0,64}')
_NEXT_MEMBER: Final = lazy_pattern(rb',\s{0,64}(?="[^"\\\x00-\x1f]{1,200}"\s{0,64}:)')


def salvage(text: bytes, repairs: Repairs) -> dict[str, Any]:
    """The members of an object as far as they can be read, with repairs counted.

    Offsets of what was mended are not known here: the text is put together from both ends.
    """
    at = text.find(b"{") + 1
    if at == 0 or b"[" in text[: at - 1]:
        return {}
    found: dict[str, Any] = {}
    failures = 0
    # Latin-1 keeps one character for each byte; all marks of JSON are ASCII.
    characters = text.decode("latin-1")
    while match := _MEMBER.match(text, at):
        try:
            value, at = _value(text, characters, match.end(), repairs)
        except MendError as error:
            repairs.mend(MISSING_END if error.incomplete else MEMBER, None)
            failures += 1
            following = _NEXT_MEMBER.search(text, match.end())
            if following is None or failures == _FAILURES:
                return found
            at = following.end()
        else:
            found[match[1].decode("utf-8", "replace")] = value
    behind = text[at:].strip(b" \t\r\n,")
    if not behind.startswith(b"}"):
        repairs.mend(MISSING_END, None)
    elif len(behind) > 1:
        repairs.mend(AFTER, None, size=len(behind) - 1)
    return found


def _value(text: bytes, characters: str, at: int, repairs: Repairs) -> tuple[Any, int]:
    """The value at a place, and where it ends. Raises MendError."""
    try:
        _, end = _WALKER.raw_decode(characters, at)
        return msgspec.json.decode(text[at:end]), end
    except (ValueError, RecursionError):
        mended, end, done = Mender().mend(text, at)
    for kind, _ in done:
        repairs.mend(kind, None)
    try:
        return msgspec.json.decode(mended), end
    except (ValueError, RecursionError):
        raise MendError("not JSON") from None
