"""Telling the elements of a damaged array apart, one by one.

A sound element ends where its brackets close. A damaged one is mended, within the text up to the
next things that begin like elements; if that fails it is left out, and reading goes on at the next
of them. All text that is passed is either an element, or counted, or blanks and commas. How often
text is looked at again is bounded, so that the time is linear, whatever the damage.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from chakra_et.io.ahead import FILL_BYTES, Ahead
from chakra_et.io.json_array import WALKER, may_be_cut
from chakra_et.io.mend import COMMA, DEPTH, Mender, MendError
from chakra_et.io.mend import STRAY as STRAY_COMMA
from chakra_et.io.openings import Openings, first_key
from chakra_et.io.repairs import Repairs
from chakra_et.patterns import lazy_pattern

ELEMENT_BYTES: Final = 1 << 26
"""A longer element is left out."""

UNREADABLE: Final = "record beyond repair"
CUT: Final = "record that was cut off"
DEEP: Final = "record nested too deep"
LONG: Final = "record longer than 64 MiB"
VALUE: Final = "unreadable value between records"
STRAY: Final = "text between records"
OPEN_END: Final = "array without an end"

_BETWEEN: Final = lazy_pattern(rb"[\s,]*")
_ARRAY_ENDS: Final = lazy_pattern(rb'\]\s*,\s*"[^"\\\x00-\x1f]{1,200}"\s*:')
_IN_LIST: Final = lazy_pattern(rb"\[\s*\Z")
_FOLLOWED: Final = lazy_pattern(rb"\s*[,\]]")
_END: Final = lazy_pattern(
    rb'\}\s{0,64}(\])\s{0,64}(?:,\s{0,64}"[^"]{1,64}"\s{0,64}:|\}\s{0,64}\Z)'
)
_PATIENCE: Final = 64
_NOW_AND_THEN: Final = 16
"""After 64 elements in a row that are left out, only each 16th is tried to be mended."""
_REACHES: Final = 4
"""A damaged element may hold 2**4 - 2 things that look like openings of elements."""
_TIMES: Final = 16
"""Text is looked at so many times on average; when that is used up, each part once."""
_LOOK_BYTES: Final = 1 << 12
"""What a look at a place counts at least at which only perhaps something begins."""
_BEHIND_BYTES: Final = 1 << 16
"""How far behind a closing bracket more elements are looked for."""
_WINDOW_BYTES: Final = 1 << 12
_TAIL_BYTES: Final = 256
"""An opening is not longer."""


class Segment(NamedTuple):
    """An element as JSON, and the place and size that it has in the file."""

    text: bytes
    offset: int
    size: int


class _MoreNeededError(Exception):
    """More text is needed to tell."""


class Apart:
    """Reads elements from a text. `looked_at` counts the bytes that were decoded or mended."""

    def __init__(
        self,
        ahead: Ahead,
        openings: Openings,
        mender: Mender,
        repairs: Repairs,
        is_element: Callable[[bytes], bool],
        start: re.Pattern[bytes],
    ) -> None:
        self.looked_at = 0
        self._ahead = ahead
        self._openings = openings
        self._mender = mender
        self._repairs = repairs
        self._is_element = is_element
        self._start = start
        self._failures = 0  # elements in a row that were left out
        self._commas = 0
        self._commas_due = 0
        self._cut = False  # whether what was looked for last may be cut by the end of the text
        self._strays = False  # whether the text before was stray text, too

    def begin(self) -> None:
        """Stand behind the bracket that opens an array."""
        self._commas = self._commas_due = 0
        self._strays = False

    def run(self, to: int) -> tuple[list[Segment], bool]:
        """The elements from here on that can be told, and whether the array ends behind them.

        Stops before an element that begins at offset `to` or behind it.
        """
        segments: list[Segment] = []
        try:
            while (mark := self._mark()) is not None:
                if mark == b"{" and self._ahead.offset(self._ahead.at) >= to and segments:
                    return segments, False
                if self._ends(mark):
                    return segments, True
                if mark != b"{":
                    self._stray(mark)
                elif (segment := self._element()) is not None:
                    segments.append(segment)
        except _MoreNeededError:
            self._ahead.fill(2 * max(self._ahead.left, FILL_BYTES))
            return segments, False
        self._repairs.mend(OPEN_END, self._ahead.offset(self._ahead.at))
        return segments, True

    def _mark(self) -> bytes | None:
        """The next byte that is neither blank nor comma; None if there is none."""
        ahead = self._ahead
        while True:
            between = _BETWEEN.match(ahead.text, ahead.at)
            if between is not None and between.end() > ahead.at:
                self._commas += between[0].count(b",")
                ahead.at = between.end()
            if ahead.left:
                return self._after_commas(ahead.text[ahead.at : ahead.at + 1])
            if not ahead.fill(FILL_BYTES):
                return None

    def _after_commas(self, mark: bytes) -> bytes:
        due = 0 if mark == b"]" else self._commas_due
        place = self._ahead.offset(self._ahead.at)
        if self._commas < due:
            self._repairs.mend(COMMA, place)
        elif self._commas > due:
            self._repairs.mend(STRAY_COMMA, place)
        self._commas = self._commas_due = 0
        return mark

    def _ends(self, mark: bytes) -> bool:
        """Whether the array ends here, which is passed then; another document may begin."""
        ahead = self._ahead
        if mark == b"]" and not self._goes_on():
            ahead.at += 1
            return True
        if self._openings.document.match(ahead.text, ahead.at):
            self._repairs.mend(OPEN_END, ahead.offset(ahead.at))
            return True
        return False

    def _goes_on(self) -> bool:
        """Whether elements of the same array follow a closing bracket, which is too many then."""
        ahead = self._ahead
        if ahead.left < _BEHIND_BYTES and not ahead.ended:
            raise _MoreNeededError
        # Behind an array stands the next key of the document, or its end.
        ended = _ARRAY_ENDS.match(ahead.text, ahead.at) is not None
        high = ahead.at + _BEHIND_BYTES
        for border in self._openings.borders(ahead.text, ahead.at, high, surely=ended):
            if self._openings.document.match(ahead.text, border):
                return False
            if self._start.search(ahead.text, ahead.at, border):
                return False
            if not _IN_LIST.search(ahead.text, max(0, border - 64), border):
                return not self._tired() and self._could_be(border)
        return False

    # Elements

    def _element(self) -> Segment | None:
        """The element here, which is passed; None if it is left out."""
        ahead, at = self._ahead, self._ahead.at
        self._strays = False
        try:
            text, end = self._sound_or_mended(at)
        except MendError as error:
            self._leave_out(at, "deep" in str(error), error.incomplete)
            if self._failures % _PATIENCE == 0:
                self._leave_out_deep()
            return None
        self._failures = 0
        self._commas_due = 1
        ahead.at = end
        return Segment(text, ahead.offset(at), end - at)

    def _sound_or_mended(self, at: int) -> tuple[bytes, int]:
        """An element as JSON, and where it ends. Raises MendError."""
        key = first_key(self._ahead.text, at)
        end = self._sound(at, self._openings.known(key))
        if end:
            self._openings.learn(key)
            return self._ahead.text[at:end], end
        if self._failures >= _PATIENCE and self._failures % _NOW_AND_THEN:
            raise MendError("one of many beyond repair")
        return self._mended(at)

    def _sound(self, at: int, known: bool) -> int:
        """Where a sound element ends, 0 if it is not sound. Raises MendError."""
        end = self._end_within(at, self._highs(at) if known else self._windows(at))
        if not end and self._ahead.left < FILL_BYTES and self._cut and self._more_helps():
            raise _MoreNeededError
        return end

    def _end_within(self, at: int, highs: Iterable[int]) -> int:
        """Where a sound value ends before one of some places, 0 if there is none.

        Only what may be cut by a place is looked for before the next one. An error tells its line,
        for which it looks through all text before it: so each look has a text of its own.
        """
        ahead = self._ahead
        self._cut = False
        for high in highs:
            characters = ahead.characters[at:high]
            try:
                _, stop = WALKER.raw_decode(characters)
            except RecursionError:
                self.looked_at += _LOOK_BYTES
                raise MendError("nested too deep") from None
            except json.JSONDecodeError as error:
                self._cut = may_be_cut(error, characters)
                self.looked_at += len(characters) if self._cut else error.pos
            else:
                self._cut = stop == len(characters) and characters[-1:] not in '"}]'
                self.looked_at += stop
                if not self._cut or high == len(ahead.text):
                    return at + stop
            if not self._cut or self._tired():
                return 0
        return 0

    def _windows(self, at: int) -> Iterator[int]:
        """Up to where a value is looked for of which nobody knows how long it is."""
        size = _WINDOW_BYTES
        while at + size < len(self._ahead.text):
            yield at + size
            size *= 8
        yield len(self._ahead.text)

    def _highs(self, at: int) -> Iterator[int]:
        """Up to where an element is looked for: the next border, then ones ever farther away."""
        text, border = self._ahead.text, at
        while border := next(self._openings.borders(text, at + 4 * (border - at)), 0):
            yield border
        yield len(text)

    def _mended(self, at: int) -> tuple[bytes, int]:
        """A damaged element as JSON, and where it ends. Raises MendError."""
        ahead = self._ahead
        borders = self._openings.borders(ahead.text, at)
        border = next(borders, len(ahead.text))
        for reach in range(_REACHES):
            self.looked_at += border - at
            try:
                mended, size, done = self._mender.mend(ahead.text[at:border])
            except MendError as error:
                if not error.incomplete or self._tired():
                    raise
                if border == len(ahead.text) and self._more_helps():
                    raise _MoreNeededError from None
                if border == len(ahead.text) or self._openings.document.match(ahead.text, border):
                    raise
                for _ in range(1 << reach):
                    border = next(borders, len(ahead.text))
            else:
                for kind, place in done:
                    self._repairs.mend(kind, ahead.offset(at + place))
                return mended, at + size
        raise MendError("too much of it looks like records")

    def _leave_out(self, at: int, deep: bool, incomplete: bool) -> None:
        """Pass an element up to the next one; the array may end before."""
        ahead = self._ahead
        self._failures += 1
        kind = DEEP if deep else UNREADABLE
        border = self._next_element(at)
        if border is None:
            if self._more_helps():
                raise _MoreNeededError
            border, kind = self._behind(at), kind if ahead.ended else LONG
            kind = CUT if incomplete and border == len(ahead.text) else kind
        elif incomplete and self._openings.document.match(ahead.text, border):
            kind = CUT
        self._repairs.leave_out(kind, ahead.offset(at), size=border - at)
        ahead.at = border

    def _leave_out_deep(self) -> None:
        """Pass many openings in a row that close nowhere near, all at once."""
        ahead, at = self._ahead, self._ahead.at
        count, ahead.at = self._openings.never_closed(ahead.text, at, DEPTH)
        if count:
            self._repairs.leave_out(UNREADABLE, ahead.offset(at), count, size=ahead.at - at)

    # What is no element

    def _stray(self, mark: bytes) -> None:
        """Pass something that is no element: a whole value, or text up to the next element."""
        ahead, at = self._ahead, self._ahead.at
        end = 0 if mark in b"}:]" or self._tired() else self._value(at)
        if end:
            self._repairs.leave_out(VALUE, ahead.offset(at), size=end - at)
            ahead.at, self._commas_due = end, 1
            return
        place = self._next_element(at) or self._behind(at)
        self._repairs.mend(STRAY, ahead.offset(at), 0 if self._strays else 1, size=place - at)
        ahead.at = place
        self._strays = True

    def _value(self, at: int) -> int:
        """Where a value ends that stands in place of an element, 0 if it is none."""
        ahead = self._ahead
        end = self._end_of_value(at)
        if end and end + _TAIL_BYTES > len(ahead.text) and self._more_helps():
            raise _MoreNeededError
        if not _FOLLOWED.match(ahead.text, end) and end < len(ahead.text):
            return 0
        return 0 if next(self._openings.borders(ahead.text, at, end), 0) else end

    def _end_of_value(self, at: int) -> int:
        """Where a sound value ends, 0 if there is none at a place."""
        before = self.looked_at
        try:
            return self._end_within(at, self._windows(at))
        except MendError:
            return 0
        finally:
            self.looked_at = max(self.looked_at, before + _LOOK_BYTES)

    def _next_element(self, at: int) -> int | None:
        """Where the next element begins behind damage, or another document, if any does."""
        text, openings = self._ahead.text, self._openings
        while not self._tired():
            at = next(openings.borders(text, at, surely=False), len(text))
            if at == len(text):
                return None
            if openings.surely(text, at) or self._could_be(at):
                return at
        return next(openings.borders(text, at), None)

    def _could_be(self, at: int) -> bool:
        """Whether a sound element begins at a place."""
        end = self._end_of_value(at)
        return end > 0 and self._is_element(self._ahead.text[at:end])

    def _behind(self, at: int) -> int:
        """Where to go on in a text in which no other element begins: at the array's end, if any."""
        ahead = self._ahead
        if not ahead.ended:
            return max(at + 1, len(ahead.text) - _TAIL_BYTES)
        end = _END.search(ahead.text, at)
        return end.start(1) if end else len(ahead.text)

    def _more_helps(self) -> bool:
        return not self._ahead.ended and self._ahead.left <= ELEMENT_BYTES

    def _tired(self) -> bool:
        """Whether text was looked at too often, so that each part is looked at but once now."""
        passed = self._ahead.offset(self._ahead.at)
        return self.looked_at > _TIMES * (passed + FILL_BYTES)
