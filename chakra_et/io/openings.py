"""How the elements of an array begin, which tells where to go on behind a damaged one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from chakra_et.patterns import lazy_pattern

_KEYS: Final = 32
"""So many first keys are remembered."""
_NO_VALUE: Final = rb"(?<!:\{)(?<!: \{)"
"""An object behind a colon is the value of a key; `_opens` knows other blanks between them. The
brace comes before this, as what begins with a byte is found fastest."""
_KEY: Final = rb'\s{0,64}"([^"\\\x00-\x1f]{1,200})"\s{0,64}:'
_FIRST: Final = lazy_pattern(rb"\s{0,64}\{" + _KEY)
_FAR_BYTES: Final = 1 << 20
"""So far ahead openings that never close are counted."""


def _first_of(keys: Iterable[str]) -> bytes:
    """What follows the brace of an object whose first key is one of these."""
    names = b"|".join(sorted(re.escape(key.encode()) for key in keys))
    return rb'\s{0,64}"(?:' + names + rb')"\s{0,64}:'


def _opening(*ways: bytes) -> re.Pattern[bytes]:
    """How an object begins in one of these ways."""
    return re.compile(rb"\{(?:" + b"|".join(ways) + b")")


def first_key(text: bytes, at: int) -> str | None:
    """The first key of an object that begins at a place; None if that is not plain."""
    match = _FIRST.match(text, at)
    return match[1].decode("utf-8", "replace") if match else None


class Openings:
    """The keys with which elements were seen to begin.

    `document` is the key with which a document begins.
    """

    def __init__(self, document: str) -> None:
        # A document also begins behind a colon: where a recording that was cut off ends with one.
        self._document = _first_of([document])
        self.document = _opening(self._document)
        self._any = _opening(_NO_VALUE + _KEY, self._document)
        self._learned: set[str] = set()

    def learn(self, *keys: str | None) -> None:
        """Take elements to begin with these keys, too."""
        new = {key for key in keys if key is not None} - self._learned
        if new and len(self._learned) < _KEYS:
            self._learned |= new
            element = _NO_VALUE + _first_of(self._learned)
            self._element = _opening(element)
            self._border = _opening(element, self._document)

    def known(self, key: str | None) -> bool:
        """Whether an element was seen to begin with this key."""
        return key in self._learned

    def last(self, text: bytes, low: int) -> int:
        """Where the last element seems to begin behind `low`; 0 if none does."""
        reach = 1 << 14
        while True:
            begin = max(low + 1, len(text) - reach)
            places = [match.start() for match in self._element.finditer(text, begin)]
            for place in reversed(places):
                if _opens(text, place):
                    return place
            if begin == low + 1:
                return 0
            reach *= 16

    def borders(
        self, text: bytes, at: int, high: int | None = None, *, surely: bool = True
    ) -> Iterator[int]:
        """Where elements, and another document, seem to begin behind a place, up to a document.

        Only what is before `high` counts. Unless `surely`, objects with any first key count.
        """
        pattern = self._border if surely else self._any
        for match in pattern.finditer(text, at + 1, len(text) if high is None else high):
            if self.document.match(text, match.start()):
                yield match.start()
                return
            if _opens(text, match.start()):
                yield match.start()

    def never_closed(self, text: bytes, at: int, depth: int) -> tuple[int, int]:
        """How many elements seem to begin from a place on that nest deeper than `depth`.

        These are those behind which so many others begin before the next closing brace or document.
        Also where the first of the others begins.
        """
        high = min(len(text), at + _FAR_BYTES)
        end = text.find(b"}", at, high)
        end = high if end < 0 else end
        if document := self.document.search(text, at + 1, end):
            end = document.start()
        places = [match.start() for match in self._element.finditer(text, at, end)]
        return (len(places) - depth, places[-depth]) if len(places) > depth else (0, at)

    def surely(self, text: bytes, at: int) -> bool:
        """Whether an object begins like the elements before it, or like a document."""
        return self._border.match(text, at) is not None


def _opens(text: bytes, place: int) -> bool:
    """An object behind a colon is the value of a key, not an element."""
    return not text[max(0, place - 64) : place].rstrip().endswith(b":")
