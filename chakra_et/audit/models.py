"""Public models told by the shapes of their matrices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
import numpy as np

from chakra_et.io.json_text import from_json
from chakra_et.model import Trace
from chakra_et.workloads.model import Model, load_model, model_names

_SHARDS = (1, 2, 4, 8, 16)
"""Into so many parts a width may be split by tensor parallelism."""


@dataclass(frozen=True)
class Likeness:
    """A public model, and which of its matrices a trace has: pairs of lengths.

    `whole` says whether it has one of every kind that tells the model.
    """

    name: str
    found: tuple[tuple[int, int], ...]
    whole: bool


def matrices(trace: Trace) -> Counter[tuple[int, int]]:
    """How often each pair of last lengths occurs among the shapes of inputs, smaller one first."""
    nodes = trace.nodes
    counts: Counter[tuple[int, int]] = Counter()
    codes, often = np.unique(nodes.input_code[nodes.input_code >= 0], return_counts=True)
    for code, count in zip(codes.tolist(), often.tolist(), strict=True):
        for shape in _shapes(nodes.texts[code][1]):
            if len(shape) >= 2:
                small, large = sorted(shape[-2:])
                counts[small, large] += count
    return counts


def likenesses(pairs: Iterable[tuple[int, int]]) -> list[Likeness]:
    """The public models that some matrices could be of, those that all kinds speak for first.

    A model is told by its projections between its hidden width and that of its feed-forward layer,
    and by its table of tokens, whole or split into equal parts. A whole projection alone makes one
    think of the model; split ones alone are too common.
    """
    there = set(pairs)
    found = []
    for name in model_names():
        model = load_model(name)
        weights = _weights(model)
        hits = {kind: [p for p in choices if p in there] for kind, choices in weights.items()}
        whole = all(hits.values())
        if whole or weights["feed-forward"][0] in there:
            matched = tuple(sorted({p for some in hits.values() for p in some}))
            found.append(Likeness(model.name, matched, whole))
    return sorted(found, key=lambda likeness: (not likeness.whole, -len(likeness.found)))


def _weights(model: Model) -> dict[str, list[tuple[int, int]]]:
    """The shapes that tell a model: of each kind, whole and split."""
    hidden = model.hidden
    widths = {"feed-forward": model.ffn, "tokens": model.vocabulary}
    return {
        kind: [_pair(hidden, width // parts) for parts in _SHARDS if width % parts == 0]
        for kind, width in widths.items()
    }


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a <= b else (b, a)


def _shapes(text: bytes) -> list[list[int]]:
    """All shapes in the text of a node's inputs, lists of tensors opened."""
    try:
        items = from_json(text) if text else []
    except msgspec.DecodeError:
        return []
    found: list[list[int]] = []
    waiting = [items]
    while waiting:
        item = waiting.pop()
        if not isinstance(item, list) or not item:
            continue
        if all(isinstance(part, int) and not isinstance(part, bool) for part in item):
            found.append(item)
        else:
            waiting += item
    return found
