"""Files that this project writes beside traces: recognised, so that nobody takes them for input."""

from __future__ import annotations

from typing import Final

from chakra_et.converters.format import Format, View, json_keys

_REMEDY: Final = "Give the trace that it describes."


def _own(name: str, *patterns: bytes) -> Format:
    return Format(f"{name} of chakra-et", View.NONE, json_keys(*patterns), _REMEDY, own=True)


FORMATS: Final = (
    _own("report", rb'"producer"\s*:\s*"chakra-et', rb'\A\{\s*"changes"\s*:\s*\{'),
    _own("manifest", rb'"format"\s*:\s*"chakra-et (?:manifest|set|collection)'),
    _own("baseline", rb'"format"\s*:\s*"chakra-et baseline'),
    _own("validation", rb'\A\{\s*"profile"\s*:\s*"[^"]*"\s*,', rb'"name"\s*:\s*"chakra-et"'),
    _own("replay", rb'\A\{\s*"ranks"\s*:\s*\{\s*"\d+"\s*:\s*\{\s*"span_ns"'),
    Format(
        "table of process groups for ASTRA-sim",
        View.NONE,
        json_keys(rb'\A\{(?:\s*"\d+"\s*:\s*\[[\d,\s]*\]\s*,?)+\s*(?:\}|\Z)'),
        _REMEDY,
        own=True,
    ),
)
