"""Phases of a step: from what generated traces tell, else from annotations, names and threads."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.model import EdgeKind, Trace

PHASES: Final = ("none", "forward", "backward", "optimizer", "prefill", "decode")
"""What the codes of phases stand for; `none` where nothing tells."""
_FORWARD: Final = PHASES.index("forward")
_BACKWARD: Final = PHASES.index("backward")
_NAMES: Final = (
    (_BACKWARD, re.compile(r"autograd::engine|backward", re.IGNORECASE)),
    (PHASES.index("optimizer"), re.compile(r"^Optimizer\.|optimizer|zero_grad", re.IGNORECASE)),
    (PHASES.index("prefill"), re.compile(r"\bprefill\b", re.IGNORECASE)),
    (PHASES.index("decode"), re.compile(r"\bdecode\b", re.IGNORECASE)),
    (_FORWARD, re.compile(r"\bforward\b", re.IGNORECASE)),
)
_SHORT: Final = 16
"""Fewer rows of a phase in a row are no phase of their own."""
_DEEPEST: Final = 1000
_LEADS: Final = (EdgeKind.CALL, EdgeKind.LAUNCH, EdgeKind.THREAD)


def phases_of(trace: Trace, source: Rows, target: Rows, kind: Rows) -> Rows:
    """The phase of each row, as a place in `PHASES`; edges are pairs of rows with their kinds."""
    told = trace.nodes.attributes.dense("phase", "", object)
    if (told != "").any():
        known = {name: code for code, name in enumerate(PHASES)}
        return np.array([known.get(text, 0) for text in told.tolist()], np.int64)
    named = _by_name(trace)
    if not named.any():
        return named
    lead = np.isin(kind, _LEADS)
    return _smooth(_inherited(named, source[lead], target[lead]))


def _by_name(trace: Trace) -> Rows:
    """The phases that rows tell themselves; 0 for most."""
    nodes = trace.nodes
    codes = [
        next((code for code, pattern in _NAMES if pattern.search(name)), 0) for name in nodes.names
    ]
    phases = np.array([*codes, 0], np.int64)[nodes.name_code]
    phases[nodes.attributes.present("fw_parent") & (phases == 0)] = _BACKWARD
    return phases


def _inherited(phases: Rows, source: Rows, target: Rows) -> Rows:
    """Rows have the phase of the nearest that led to them; the rest is forward in training."""
    parent = np.full(len(phases), -1, np.int64)
    parent[target[::-1]] = source[::-1]
    phases = phases.copy()
    for _ in range(_DEEPEST):
        waiting = np.flatnonzero((phases == 0) & (parent >= 0))
        found = phases[parent[waiting]]
        if not found.any():
            break
        phases[waiting] = found
    if (phases == _BACKWARD).any():
        phases[phases == 0] = _FORWARD
    return phases


def _smooth(phases: Rows) -> Rows:
    """Runs of few rows belong to what is before them."""
    if len(phases) == 0:
        return phases
    begins = np.flatnonzero(np.append(True, phases[1:] != phases[:-1]))
    lengths = np.diff(np.append(begins, len(phases)))
    long: Mask = lengths >= _SHORT
    long[0] = True
    kept = np.maximum.accumulate(np.where(long, np.arange(len(begins)), 0))
    return np.repeat(phases[begins][kept], lengths)
