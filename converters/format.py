"""What a format says of itself: how it is recognised, called, read and written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from chakra_et.patterns import lazy_pattern

_CONTROL_BYTES: Final = bytes(set(range(0x20)) - set(b"\t\n\r"))
_FIRST_BYTES: Final = 128
_TEXT_BYTES: Final = 1 << 16


class View(Enum):
    """What a file holds of a run; what becomes of the file depends on this alone."""

    HOST = "host"
    """A `HostTrace`: operators, tensors and callers, as the framework saw them."""
    DEVICE = "device"
    """A `DeviceTrace`: times, threads, streams and kernels, as a profiler saw them."""
    BOTH = "both"
    """A `Recording`: both views, which another tool has linked."""
    TRACE = "trace"
    """A `Trace`: an execution trace, ready to use."""
    NONE = "none"
    """Nothing that is read here, but people bring it."""


class Head(msgspec.Struct, frozen=True, dict=True):
    """The first bytes of a file, without compression."""

    start: bytes
    name: str = ""
    """The name of the file, for formats whose content does not tell."""

    @cached_property
    def text(self) -> bytes:
        """What tells the format: the start without a byte-order mark and leading blanks."""
        return self.start[:_TEXT_BYTES].removeprefix(b"\xef\xbb\xbf").lstrip()

    @cached_property
    def is_json(self) -> bool:
        """Whether this can be a JSON object or array.

        JSON holds no control bytes but blanks. An ET can begin with the same byte, as the length
        of its first record, but has tags and lengths, which are such bytes.
        """
        text = self.text[:_FIRST_BYTES]
        return text[:1] in (b"{", b"[") and len(text.translate(None, _CONTROL_BYTES)) == len(text)


class Identity(msgspec.Struct, frozen=True):
    """What the head of a file tells beside its format, above all which process it comes from."""

    pid: int | None = None
    rank: int | None = None
    world_size: int | None = None
    detail: str = ""
    """What else is worth telling, where the file is refused."""


Recogniser: TypeAlias = Callable[[Head], "int | None"]


def _unknown(_: Head) -> Identity:
    return Identity()


class Format(msgspec.Struct, frozen=True):
    """One format of files.

    `recognise` returns the position of the evidence in the head, or None; of several formats, the
    one whose evidence comes first is the file's. `read` takes a path and whether damage is an
    error, and returns what `view` names. `remedy` tells people who bring such a file to the wrong
    place what to do with it.
    """

    name: str
    view: View
    recognise: Recogniser
    remedy: str
    identify: Callable[[Head], Identity] = _unknown
    read: Callable[[Path, bool], Any] | None = None
    read_window: Callable[[Path, bool, Callable[[str], bool], bool], Any] | None = None
    """As `read`, of a long file only what a window needs: the annotations that are chosen by their
    names, and whether a host trace is cut as well.
    """
    describe: Callable[[Any], dict[str, Any]] | None = None
    """Facts about what was read, by label, for `chakra info`."""
    write: Callable[[Any], Iterable[bytes]] | None = None
    """The bytes of a `Trace`."""
    suffixes: tuple[str, ...] = ()
    """Names that ask for this format when a trace is written."""
    schema: str | None = None
    """The JSON Schema in `schema/` that such files are checked against."""
    own: bool = False
    """Whether this project writes such files beside traces, as reports are."""

    @property
    def called(self) -> str:
        """The name with its article."""
        if self.view is View.NONE and not self.own:
            return self.name
        return f"{'an' if self.name[0] in 'EAIO' else 'a'} {self.name}"


def json_keys(*patterns: bytes, begin: bytes | None = None, mark: bytes = b"") -> Recogniser:
    """Recognises JSON objects by the first place where one of these patterns stands.

    Evidence at the very start is `begin`, a pattern that is tried there alone; the others start
    with the quote of a key. `mark` is what all the others have in them: heads without it are not
    searched for them.
    """
    keys = lazy_pattern(b"|".join(b"(?:%b)" % part for part in patterns), re.DOTALL)
    first = None if begin is None else lazy_pattern(begin, re.DOTALL)

    def recognise(head: Head) -> int | None:
        if not head.is_json or head.text[:1] != b"{":
            return None
        if first is not None and first.match(head.text):
            return 0
        if not patterns or mark not in head.text:
            return None
        match = keys.search(head.text)
        return None if match is None else match.start()

    return recognise


def number(pattern: re.Pattern[bytes], head: Head) -> int | None:
    """The number that a pattern finds in a head."""
    match = pattern.search(head.start)
    return None if match is None else int(match[1])
