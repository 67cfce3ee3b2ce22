"""How many threads an operator had in a recording, as `chakra_et.collection` notes it."""

from __future__ import annotations

from typing import Final

import msgspec

from chakra_et.collection.threads import KEY
from chakra_et.model import Trace

_MOST: Final = 1 << 12
"""More threads than any machine has: a number beyond is damage."""


def recorded_threads(trace: Trace) -> int | None:
    """The threads of one operator; None where the recording does not say."""
    text = trace.metadata.get("profile_metadata")
    try:
        told = msgspec.json.decode(text) if isinstance(text, str) else None
    except (msgspec.DecodeError, RecursionError):
        return None
    noted = told.get(KEY) if isinstance(told, dict) else None
    count = noted.get("intra_op") if isinstance(noted, dict) else None
    return count if type(count) is int and 0 < count <= _MOST else None
