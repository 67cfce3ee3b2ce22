"""Files that this project writes beside traces: recognised, so that nobody takes them for input."""

from __future__ import annotations

from typing import Final

from chakra_et.converters.format import Format, View, json_keys

_REMEDY: Final = "Give the trace that it describes."


def _own(name: str, *patterns: bytes, begin: bytes | None = None) -> Format:
    recognise = json_keys(*patterns, begin=begin, mark=b'"chakra-et')
    return Format(f"{name} of chakra-et", View.NONE, recognise, _REMEDY, own=True)


FORMATS: Final = (
    _own("report", rb'"producer"\s*:\s*"chakra-et', begin=rb'\{\s*"changes"\s*:\s*\{'),
    _own("manifest", rb'"format"\s*:\s*"chakra-et (?:manifest|set|collection)'),
    _own("baseline", rb'"format"\s*:\s*"chakra-et baseline'),
    _own(
        "validation",
        rb'"name"\s*:\s*"chakra-et"',
        begin=rb'\{\s*"profile"\s*:\s*"[^"]*"\s*,',
    ),
    _own("replay", begin=rb'\{\s*"ranks"\s*:\s*\{\s*"\d+"\s*:\s*\{\s*"span_ns"'),
    Format(
        "table of process groups for ASTRA-sim",
        View.NONE,
        json_keys(begin=rb'\{(?:\s*"\d+"\s*:\s*\[[\d,\s]*\]\s*,?)+\s*(?:\}|\Z)'),
        _REMEDY,
        own=True,
    ),
)
