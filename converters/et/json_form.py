"""A trace as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from chakra_et.model import Trace


def decode_json(data: bytes) -> Trace:
    """The trace of a JSON document."""
    raise NotImplementedError


def encode_json(trace: Trace) -> Iterator[bytes]:
    """The JSON document of a trace."""
    raise NotImplementedError
