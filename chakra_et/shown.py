"""Text that comes from files, as people may see it.

Names of operations and of files can hold anything: line ends, which would make lines of their own
in a list, sequences that steer a terminal, bytes that are no text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from chakra_et.patterns import lazy_pattern

if TYPE_CHECKING:
    from rich.text import Text

_BYTE: Final = lazy_pattern("[\udc80-\udcff]")


def shown(text: str) -> str:
    """A text as one line: what cannot be printed is written as an escape."""
    if text.isprintable():
        return text
    return "".join([char if char.isprintable() else _escape(char) for char in text])


def shown_lines(text: str) -> str:
    """A text of lines, each as `shown` gives it."""
    return "\n".join(map(shown, text.split("\n")))


def _escape(char: str) -> str:
    """`\\n`, `\\x1b`, `\\u2028`; a byte that was no text is `\\xff`."""
    if _BYTE.match(char):
        return f"\\x{ord(char) - 0xDC00:02x}"
    return char.encode("unicode_escape").decode()


def line(text: str, style: str = "") -> Text:
    """A line for a terminal; brackets in it are no markup."""
    from rich.text import Text

    return Text(shown(text), style)


def shortened(text: str, width: int = 60) -> str:
    """A text cut to `width` characters; kernels have names of hundreds."""
    return text if len(text) <= width else text[: width - 1] + "…"


def number_of(count: int, what: str, plural: str = "s") -> str:
    """A number of things: `1 node`, `2 nodes`; `plural` is what the word ends in then."""
    return f"{count} {what}" if count == 1 else f"{count} {what}{plural}"


def several(count: int, one: str, more: str) -> str:
    """A number of things that do something: `1 node has`, `2 nodes have`."""
    return f"{count} {one if count == 1 else more}"


def encodable(content: Any) -> Any:
    """Content for a file in UTF-8: lists, dictionaries and texts, with surrogates as escapes."""
    if isinstance(content, str):
        return content if content.isascii() else _without_surrogates(content)
    if isinstance(content, dict):
        return {encodable(key): encodable(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [encodable(item) for item in content]
    return content


def _without_surrogates(text: str) -> str:
    return "".join([_escape(char) if "\ud800" <= char <= "\udfff" else char for char in text])
