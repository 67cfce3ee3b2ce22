"""The kinds of a node's data dependencies as one text: `program,launch?`."""

from __future__ import annotations

from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.converters.et.wire import slices
from chakra_et.kernel import kernel
from chakra_et.model import EdgeKind
from chakra_et.pool import Pool

GUESSED: Final = "?"
_BY_LABEL: Final = {kind.label: kind for kind in EdgeKind if kind is not EdgeKind.CALL}
_PLAIN: Final = int(EdgeKind.DATA) << 1


def edge_marks(kind: npt.NDArray[np.uint8], inferred: Mask) -> npt.NDArray[np.uint8]:
    """A number for each edge that tells both."""
    return (kind << 1 | inferred).astype(np.uint8)


def kinds_texts(offsets: Rows, marks: npt.NDArray[np.uint8]) -> tuple[Rows, list[str]]:
    """For each node the code of the text, and the distinct texts.

    The edges between two offsets are a node's. The text is "" where all are plain ones of kind
    data, or there is none.
    """
    codes, distinct = _distinct(marks, offsets)
    return codes, list(map(_text, distinct))


def _distinct(marks: npt.NDArray[np.uint8], offsets: Rows) -> tuple[Rows, list[bytes]]:
    """The distinct parts of `marks` between offsets, in order of first use, and a code for each."""
    if (module := kernel()) is not None:
        codes, parts = module.distinct_parts(marks, np.ascontiguousarray(offsets, np.int64))
        return codes.astype(np.int64), parts
    pool: Pool[bytes] = Pool()
    found = list(map(pool.__getitem__, slices(marks.tobytes(), np.diff(offsets))))
    return np.array(found, np.int64), pool.in_order


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


class ParsedKinds:
    """Texts of many nodes, each distinct one parsed once for each number of edges."""

    def __init__(self) -> None:
        self._places: Pool[tuple[str, int]] = Pool()
        self._sound: list[bool] = []
        self._kinds: list[list[int]] = []
        self._guessed: list[list[bool]] = []

    def codes(self, texts: list[str], counts: Rows) -> Rows:
        """Text and number of edges of each node as one number."""
        # Nodes mostly share the object of a text, so that only few objects are looked at.
        objects = np.fromiter(map(id, texts), np.uint64, len(texts))
        place = np.unique(objects, return_inverse=True)[1]
        pairs = place * (int(counts.max(initial=0)) + 1) + counts
        _, first, pair = np.unique(pairs, return_index=True, return_inverse=True)
        found = [self._places[texts[row], int(counts[row])] for row in first.tolist()]
        self._parse()
        return np.array(found, np.int64)[pair]

    def _parse(self) -> None:
        for text, count in self._places.in_order[len(self._sound) :]:
            told = parse_kinds(text, count)
            kinds, guessed = ([], []) if told is None else told
            self._sound.append(told is not None)
            self._kinds.append(kinds)
            self._guessed.append(guessed)

    def are_sound(self, codes: Rows) -> Mask:
        """Where a text tells the kinds of all edges."""
        return np.array(self._sound, np.bool_)[codes]

    def of_edges(self, codes: Rows) -> tuple[npt.NDArray[np.uint8], Mask]:
        """Kinds and inferred flags of the edges of all these nodes, one after the other."""
        lengths = np.array([len(kinds) for kinds in self._kinds], np.int64)
        length = lengths[codes]
        before = np.cumsum(length) - length
        places = np.repeat((np.cumsum(lengths) - lengths)[codes] - before, length)
        places += np.arange(len(places))
        kinds = np.array(list(chain.from_iterable(self._kinds)), np.uint8)
        guessed = np.array(list(chain.from_iterable(self._guessed)), np.bool_)
        return kinds[places], guessed[places]
