"""The account of a profile: how many records there are, and why some do not become nodes."""

from __future__ import annotations

from collections import Counter

import numpy as np

from chakra_et.converters.kineto.categories import (
    GRAPH_ARROW,
    LEFT_OUT,
    LEFT_OUT_PHASES,
    UNKNOWN,
)
from chakra_et.recording import DeviceTrace

_SPAN = "X"
_GRAPH_CATEGORY = "ac2g"


def label(category: str, phase: str) -> str:
    """What a report calls records: by their category, or by their phase where they have none."""
    return category or f"(phase {phase})"


def totals_of(counts: dict[tuple[str, str], int]) -> dict[str, int]:
    """How many records there are by the report's names, in order."""
    totals: dict[str, int] = {}
    for (category, phase), count in sorted(counts.items()):
        name = label(category, phase)
        totals[name] = totals.get(name, 0) + count
    return totals


def give_account(device: DeviceTrace) -> None:
    """Set `totals`, and add to `left_out` what never became a row, so that all adds up."""
    device.totals = totals_of(device.counts)
    left_out = _by_phase(device) + device.left_out
    rows = _rows_by_name(device)
    lost = Counter[str]()
    for (name, _), count in left_out.items():
        lost[name] += count
    for name, total in device.totals.items():
        rest = total - rows[name] - lost[name]
        if rest:
            left_out[name, LEFT_OUT.get(name, UNKNOWN)] += rest
    device.left_out = left_out


def _by_phase(device: DeviceTrace) -> Counter[tuple[str, str]]:
    """Records that are no spans; arrows inside graphs are evidence."""
    found: Counter[tuple[str, str]] = Counter()
    for (category, phase), count in device.counts.items():
        if phase != _SPAN:
            reason = LEFT_OUT_PHASES.get(phase, f"phase {phase}")
            found[label(category, phase), LEFT_OUT.get(category, reason)] += count
    arrows = device.graph_flows.ends
    if arrows and any(category == _GRAPH_CATEGORY for category, _ in device.counts):
        found[_GRAPH_CATEGORY, GRAPH_ARROW] += arrows
        found[_GRAPH_CATEGORY, LEFT_OUT[_GRAPH_CATEGORY]] -= arrows
    return +found


def _rows_by_name(device: DeviceTrace) -> Counter[str]:
    codes, counts = np.unique(device.category, return_counts=True)
    found = Counter[str]()
    for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
        found[device.counted_as(code)] += count
    return found
