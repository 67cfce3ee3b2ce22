"""Mending the text of one JSON value.

Producers write names without escaping them, so that quotes, control bytes and backslashes inside
break the JSON around. A quote that really ends a text is known by what follows it: a colon after a
key; a brace, or a comma and a key, after a value. Every step moves forward, and what is looked at
around a quote is bounded, so that the time is linear in the text.
"""

from __future__ import annotations

import re
from typing import Final

from chakra_et.patterns import lazy_pattern

QUOTE: Final = "unescaped quote in a string"
ESCAPE: Final = "invalid escape in a string"
CONTROL: Final = "control character in a string"
ENCODING: Final = "bytes that are not UTF-8"
SURROGATE: Final = "half of a surrogate pair"
NUMBER: Final = "NaN or Infinity as a number"
WORD: Final = "Python literal in place of a JSON value"
COMMA: Final = "missing comma"
STRAY: Final = "extra comma"

DEPTH: Final = 200
"""Deeper nesting than any producer writes is not followed."""

_GAP: Final = lazy_pattern(rb"[\x00-\x20]*")
_SCALAR: Final = lazy_pattern(rb'[^\x00-\x20,:\[\]{}"]+')
_NUMBER: Final = lazy_pattern(rb"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
_NOT_A_NUMBER: Final = lazy_pattern(rb"([+-]?)(nan|inf|infinity)\Z", re.IGNORECASE)
_WORDS: Final = {b"None": b"null", b"True": b"true", b"False": b"false"}
_KEPT: Final = {b"\t": b"\\t", b"\n": b"\\n", b"\r": b"\\r"}
_OTHER_CONTROL: Final = bytes(set(range(0x20)) - set(b"\t\n\r"))
_QUOTES: Final = 10_000
_BACKSLASHES: Final = 4096
_LONGEST: Final = 1 << 22
"""Bounds on the text of one value: more than any producer writes."""
_CONTROL: Final = lazy_pattern(rb"[\x00-\x1f]")
_HEX: Final = rb"[0-9a-fA-F]{2}"
_SPECIAL: Final = lazy_pattern(
    rb"\\u[dD][89abAB]" + _HEX + rb"\\u[dD][c-fC-F]" + _HEX + rb"|(?P<half>\\u[dD][89a-fA-F]" + _HEX
    + rb')|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt]|(?P<escape>\\)|(?P<quote>")'
)  # fmt: skip
_SPACE: Final = rb"\s{0,64}"
_ANY_KEY: Final = rb'(?:[^"\\\x00-\x1f]|\\[^\x00-\x1f]){0,80}'
_AFTER_KEY: Final = lazy_pattern(rb'"' + _SPACE + rb":")
_AFTER_ITEM: Final = lazy_pattern(
    rb'"' + _SPACE + rb"(?:\]" + _SPACE + rb"(?:[,}\]]|\Z)|," + _SPACE + rb'[-"\d\[{tfnNI])'
)


def _after_value(key: bytes) -> re.Pattern[bytes]:
    gap = _SPACE
    return re.compile(
        rb'"' + gap + rb"(?:,?" + gap + rb'"(?:' + key + rb')"' + gap + rb":|\}" + gap
        + rb"(?:[,}\]]|\Z))"
    )  # fmt: skip


_AFTER_ANY_VALUE: Final = _after_value(_ANY_KEY)


class MendError(Exception):
    """The text is beyond repair; `incomplete` if it ended too early."""

    def __init__(self, reason: str, *, incomplete: bool = False) -> None:
        super().__init__(reason)
        self.incomplete = incomplete


class Mender:
    """Mends values; of records, the outermost keys may be known."""

    def __init__(self, keys: frozenset[str] | None = None) -> None:
        names = b"|".join(re.escape(key.encode()) for key in sorted(keys or ()))
        self._after_outer = _after_value(names) if keys else _AFTER_ANY_VALUE

    def mend(self, text: bytes, at: int = 0) -> tuple[bytes, int, list[tuple[str, int]]]:
        """The value at a place as valid JSON, where it ends, and what was mended where.

        Raises MendError.
        """
        return _Mending(text, self._after_outer).run(at)


class _Mending:
    """One value while it is mended: a walk over tokens with a stack of open brackets."""

    def __init__(self, text: bytes, after_outer: re.Pattern[bytes]) -> None:
        self.text = text
        self.after_outer = after_outer
        self.out: list[bytes] = []
        self.done: list[tuple[str, int]] = []
        self.stack = bytearray()
        self.wanted = "value"

    def run(self, at: int) -> tuple[bytes, int, list[tuple[str, int]]]:
        while True:
            gap = _GAP.match(self.text, at)
            at = gap.end() if gap else at
            if at >= len(self.text):
                raise MendError("it ends too early", incomplete=True)
            at = self._token(at, self.text[at : at + 1])
            if not self.stack and self.wanted == "next":
                return b"".join(self.out), at, self.done

    def _token(self, at: int, mark: bytes) -> int:
        if mark in b"{[":
            return self._open(at, mark)
        if mark in b"}]":
            return self._close(at, mark)
        if mark == b",":
            return self._comma(at)
        if mark == b":":
            if self.wanted != "colon":
                raise MendError("unexpected colon")
            self.out.append(mark)
            self.wanted = "value"
            return at + 1
        return self._text(at) if mark == b'"' else self._scalar(at)

    def _begin_value(self, at: int) -> None:
        if self.wanted == "next" and self.stack:
            self.done.append((COMMA, at))
            self.out.append(b",")
            self.wanted = "value" if self.stack[-1:] == b"[" else "key"
        if self.wanted not in ("value", "first item"):
            raise MendError("unexpected value")

    def _open(self, at: int, mark: bytes) -> int:
        self._begin_value(at)
        if len(self.stack) >= DEPTH:
            raise MendError("nested too deep")
        self.stack += mark
        self.out.append(mark)
        self.wanted = "first key" if mark == b"{" else "first item"
        return at + 1

    def _close(self, at: int, mark: bytes) -> int:
        pair = b"{}" if mark == b"}" else b"[]"
        if self.stack[-1:] != pair[:1] or self.wanted in ("colon",):
            raise MendError("brackets do not match")
        if self.wanted in ("key", "value"):
            if self.out[-1] != b",":
                raise MendError("a value is missing")
            self.out.pop()
            self.done.append((STRAY, at))
        self.stack.pop()
        self.out.append(mark)
        self.wanted = "next"
        return at + 1

    def _comma(self, at: int) -> int:
        if self.wanted == "next":
            self.out.append(b",")
            self.wanted = "value" if self.stack[-1:] == b"[" else "key"
        elif self.wanted in ("key", "first key", "first item") or self.out[-1:] == [b","]:
            self.done.append((STRAY, at))
        else:
            raise MendError("a value is missing")
        return at + 1

    def _scalar(self, at: int) -> int:
        found = _SCALAR.match(self.text, at)
        if found is None:
            raise MendError("a byte that cannot begin a value")
        self._begin_value(at)
        word = found[0]
        if not _NUMBER.match(word) and word not in (b"true", b"false", b"null"):
            special = _NOT_A_NUMBER.match(word)
            if special:
                sign = b"-" if special[1] == b"-" else b""
                self.done.append((NUMBER, at))
                word = b'"' + sign + special[2][:3].lower() + b'"'
            elif word in _WORDS:
                self.done.append((WORD, at))
                word = _WORDS[word]
            else:
                cut = found.end() == len(self.text)
                raise MendError("an unknown word", incomplete=cut)
        self.out.append(word)
        self.wanted = "next"
        return found.end()

    def _text(self, at: int) -> int:
        if self.wanted == "next" and self.stack[-1:] == b"{":
            self.done.append((COMMA, at))
            self.out.append(b",")
            self.wanted = "key"
        is_key = self.wanted in ("key", "first key")
        if not is_key:
            self._begin_value(at)
        end = self._end_of_text(at, is_key)
        self.out.append(b'"' + self._clean(self.text[at + 1 : end], at + 1) + b'"')
        self.wanted = "colon" if is_key else "next"
        return end + 1

    def _end_of_text(self, at: int, is_key: bool) -> int:
        """Where the quote stands that ends the text which begins at `at`."""
        outer = len(self.stack) == 1 and self.stack == b"{"
        if is_key:
            follows = _AFTER_KEY
        elif self.stack[-1:] == b"[":
            follows = _AFTER_ITEM
        else:
            follows = self.after_outer if outer else _AFTER_ANY_VALUE
        end = at
        for _ in range(_QUOTES):
            end = self.text.find(b'"', end + 1)
            if end < 0:
                raise MendError("an unterminated string", incomplete=True)
            before = self.text[max(at + 1, end - _BACKSLASHES) : end]
            escapes = len(before) - len(before.rstrip(b"\\"))
            # A path may end in a backslash that should have been escaped.
            if (escapes % 2 == 0 or outer) and follows.match(self.text, end):
                return end
            if is_key and escapes % 2 == 0:
                # Names come from programs, keys from the producer, which knows how to write them.
                raise MendError("a key with a quote in it")
        raise MendError("a string with too many quotes")

    def _clean(self, text: bytes, at: int) -> bytes:
        """The inside of a text with everything escaped that has to be."""
        if len(text) > _LONGEST:
            raise MendError("a string longer than any name")
        if b'"' in text or b"\\" in text:

            def escaped(match: re.Match[bytes]) -> bytes:
                if match.lastgroup is None:
                    return match[0]
                kind = {"half": SURROGATE, "escape": ESCAPE, "quote": QUOTE}[match.lastgroup]
                self.done.append((kind, at + match.start()))
                return b"\\ufffd" if match.lastgroup == "half" else b"\\" + match[0]

            text = _SPECIAL.sub(escaped, text)
        if control := _CONTROL.search(text):
            self.done.append((CONTROL, at + control.start()))
            for byte, escape in _KEPT.items():
                text = text.replace(byte, escape)
            text = text.translate(None, _OTHER_CONTROL)
        try:
            text.decode()
        except UnicodeDecodeError as error:
            self.done.append((ENCODING, at + error.start))
            text = text.decode("utf-8", "replace").encode()
        return text
