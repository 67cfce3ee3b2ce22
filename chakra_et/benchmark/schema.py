"""Operators' schemas, as PyTorch writes them: `aten::add.Tensor(Tensor self, ...) -> Tensor`.

The grammar is that of PyTorch's `aten/src/ATen/native/README.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from keyword import iskeyword
from typing import Final

_SCHEMA: Final = re.compile(
    r"(?P<space>\w+)::(?P<name>\w+)(?:\.(?P<overload>\w+))?\((?P<arguments>.*)\)"
    r"\s*->\s*(?P<returns>.*)",
    re.DOTALL | re.ASCII,
)
_ARGUMENT: Final = re.compile(
    r"(?P<type>.+?)\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.*))?", re.DOTALL | re.ASCII
)
_ALIAS: Final = re.compile(r"\([^()]*\)")
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class Argument:
    """One argument: its type without the marks of aliases, and whether it is given by name."""

    type: str
    name: str
    by_name: bool
    has_default: bool
    written: bool
    """Whether the operator writes it: `Tensor(a!)`."""

    @property
    def optional(self) -> bool:
        """Whether None may be given for it."""
        return self.type.endswith("?")


@dataclass(frozen=True)
class Schema:
    """One overload of an operator."""

    namespace: str
    name: str
    overload: str
    """`default` where the schema names none, as `torch.ops` calls it."""
    arguments: tuple[Argument, ...]
    returns: int
    """How many values it returns."""

    @property
    def qualified(self) -> str:
        """`aten::add`, whatever the overload."""
        return f"{self.namespace}::{self.name}"

    @property
    def path(self) -> str:
        """Where `torch.ops` has it: `aten.add.Tensor`."""
        return f"{self.namespace}.{self.name}.{self.overload}"

    @property
    def expression(self) -> str:
        """The overload as Python writes it: `torch.ops.aten.add.Tensor`.

        The overload of `aten::random_.from` is a keyword of Python, for one.
        """
        text = "torch.ops"
        for part in self.path.split("."):
            text = f"{text}.{part}" if is_name(part) else f"getattr({text}, {part!r})"
        return text


def is_name(text: str) -> bool:
    """Whether Python takes a text for a name."""
    return text.isidentifier() and not iskeyword(text)


@cache
def parse_schema(text: str) -> Schema | None:
    """The schema that a text holds; None where it is none."""
    match = _SCHEMA.fullmatch(text.strip())
    if match is None:
        return None
    arguments: list[Argument] = []
    by_name = False
    for part in split(match["arguments"]):
        if part == "*":
            by_name = True
            continue
        argument = _argument(part, by_name)
        if argument is None:
            return None
        arguments.append(argument)
    return Schema(
        match["space"],
        match["name"],
        match["overload"] or "default",
        tuple(arguments),
        _returns(match["returns"].strip()),
    )


def split(text: str) -> list[str]:
    """The parts between commas outside of brackets and quotes; none of an empty text."""
    parts, depth, begin, quote = [], 0, 0, ""
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:place].strip())
            begin = place + 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts


def _argument(text: str, by_name: bool) -> Argument | None:
    match = _ARGUMENT.fullmatch(text)
    if match is None:
        return None
    marks = _ALIAS.findall(match["type"])
    return Argument(
        _ALIAS.sub("", match["type"]).strip(),
        match["name"],
        by_name,
        match["default"] is not None,
        any("!" in mark for mark in marks),
    )


def _returns(text: str) -> int:
    return len(split(text[1:-1])) if text.startswith("(") and text.endswith(")") else 1
