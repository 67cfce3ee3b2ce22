"""A set of ids that holds little, however many there are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from chakra_et.codes import distinct
from chakra_et.columns import Mask, Rows

_PAGE = 1 << 16
_BIT = (1 << np.arange(8)).astype(np.uint8)


class IdSet:
    """Integers above 0: a bit for each, in pages that are there where ids are."""

    def __init__(self) -> None:
        self._pages: dict[int, npt.NDArray[np.uint8]] = {}

    def add(self, ids: Rows) -> None:
        """Take in ids; those that are not above 0 stand for none."""
        for page, bits in _by_page(ids[ids > 0]):
            self._pages.setdefault(page, np.zeros(_PAGE >> 3, np.uint8))
            np.bitwise_or.at(self._pages[page], bits >> 3, _BIT[bits & 7])

    def has(self, ids: Rows) -> Mask:
        """Which of some ids are in the set."""
        found = np.zeros(len(ids), np.bool_)
        if not self._pages:
            return found
        for page in distinct(ids // _PAGE).tolist():
            rows = np.flatnonzero(ids // _PAGE == page)
            if page in self._pages:
                bits = ids[rows] % _PAGE
                found[rows] = self._pages[page][bits >> 3] & _BIT[bits & 7] != 0
        return found

    def without(self, other: IdSet) -> Rows:
        """The ids that another set does not hold, in no order."""
        found = [np.zeros(0, np.int64)]
        for page, bits in self._pages.items():
            rest = bits & ~other._pages[page] if page in other._pages else bits
            found.append(np.flatnonzero(np.unpackbits(rest, bitorder="little")) + page * _PAGE)
        return np.concatenate(found)

    def __len__(self) -> int:
        return sum(int(np.unpackbits(page).sum()) for page in self._pages.values())

    def __repr__(self) -> str:
        return f"<IdSet of {len(self)}>"


def _by_page(ids: Rows) -> Iterator[tuple[int, Rows]]:
    pages = ids // _PAGE
    for page in distinct(pages).tolist():
        yield page, ids[pages == page] % _PAGE
