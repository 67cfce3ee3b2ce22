"""The kinds of a node's data dependencies as one text: `program,launch?`."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from chakra_et.model import EdgeKind, Edges

GUESSED: Final = "?"
_BY_LABEL: Final = {kind.label: kind for kind in EdgeKind if kind is not EdgeKind.CALL}
_PLAIN: Final = int(EdgeKind.DATA) << 1


def kinds_texts(edges: Edges) -> list[str]:
    """For each node the text; "" where every edge is a plain one of kind data, or none is."""
    marks = (edges.kind << 1 | edges.inferred).astype(np.uint8).tobytes()
    offsets = edges.offsets.tolist()
    known: dict[bytes, str] = {}
    texts = []
    for start, end in pairwise(offsets):
        node = marks[start:end]
        text = known.get(node)
        if text is None:
            text = known[node] = _text(node)
        texts.append(text)
    return texts


def _text(marks: bytes) -> str:
    if all(mark == _PLAIN for mark in marks):
        return ""
    return ",".join(EdgeKind(mark >> 1).label + GUESSED * (mark & 1) for mark in marks)


def parse_kinds(text: str, count: int) -> tuple[list[int], list[bool]] | None:
    """Kinds and inferred flags of `count` edges; None if the text is not about that many."""
    words = text.split(",")
    if len(words) != count:
        return None
    guessed = [word.endswith(GUESSED) for word in words]
    kinds = [_BY_LABEL.get(word.removesuffix(GUESSED)) for word in words]
    return None if None in kinds else ([int(k) for k in kinds if k is not None], guessed)
