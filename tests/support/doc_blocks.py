"""The blocks of the documentation's pages: what they hold, and running them as a reader would.

A line of a `console` block that begins with `$ ` is a command, the others are what it prints; in a
`sh` block every line is one. Commands run in this process.
"""

from __future__ import annotations

import gzip
import re
import secrets
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import command
from command import Done, chakra
from places import ROOT

from chakra_et import aliases

SHELL: Final = ("console", "sh")

_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_OUTPUTS: Final = ("-o", "--output", "--write-baseline")
MAY_FIND: Final = ("validate", "doctor", "audit")
"""Verbs that end with 1 where they have found something."""
KEEPS: Final = {"--resume", "--shard"}
"""Options that go on with what is there."""


@dataclass(frozen=True)
class Block:
    """One block of a page."""

    page: str
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """The command lines of a block for the shell; a line that goes on is one with the next."""
        if self.language not in SHELL:
            return []
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        return [line for line in lines if shlex.split(line, comments=True)]


def pages() -> list[str]:
    """The pages of the documentation, from the root of the repository."""
    found = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return [path.relative_to(ROOT).as_posix() for path in found]


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    text = (ROOT / page).read_text("utf-8")
    return [Block(page, language, body) for language, body in _BLOCK.findall(text)]


def run(line: str) -> None:
    """Run a command line in the current directory. Raises AssertionError if it fails."""
    given = b""
    for words, target in _pipeline(line):
        given = PROGRAMS[words[0]](words, given)
        if target is not None:
            Path(target).write_bytes(given)


def program(line: str) -> str:
    """The last program of a command line: the one that it is about."""
    return _pipeline(line)[-1][0][0]


def _pipeline(line: str) -> list[tuple[list[str], str | None]]:
    """The commands of a line, and where the output of each goes if not to the next."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>;&")
    lexer.whitespace_split = True
    parts: list[tuple[list[str], str | None]] = []
    words: list[str] = []
    tokens = iter(lexer)
    for token in tokens:
        if token == "|":
            parts.append((words, None))
            words = []
        elif token == ">":
            return [*parts, (words, next(tokens))]
        else:
            assert not set(token) & set("<;&") or set(token) - set("|<>;&"), f"{token} in {line}"
            words += sorted(map(str, Path().glob(token))) if token.startswith("*") else [token]
    return [*parts, (words, None)]


def _chakra(words: list[str], given: bytes) -> bytes:
    for output in [] if KEEPS & set(words) else _outputs(words):
        # A reader tries one example or another; the second does not find what the first wrote.
        if output.is_dir():
            shutil.rmtree(output)
        output.unlink(missing_ok=True)
    done = chakra(*words[1:], stdin=given)
    _judge(words, done)
    return done.raw


def _judge(words: list[str], done: Done) -> None:
    may_find = words[1] in MAY_FIND and done.code == 1 and "error: " not in done.errors
    assert done.code == 0 or may_find, f"{words} ends with {done.code}\n{done.errors}{done.output}"
    missing = [output for output in _outputs(words) if not output.exists()]
    assert not missing, f"{words} wrote no {missing}"
    assert done.raw or done.errors or _outputs(words), f"{words} said nothing and wrote nothing"


def _outputs(words: list[str]) -> Iterator[Path]:
    for option, value in pairwise(words):
        if option in _OUTPUTS and value != "-":
            yield Path(value)


def _module(words: list[str], given: bytes) -> bytes:
    assert words[:3] == ["python", "-m", "chakra_et.aliases"], words
    done = command.program(aliases.main, "aliases", *words[3:], stdin=given)
    assert done.code == 0, f"{words} ends with {done.code}\n{done.errors}{done.output}"
    return done.raw


def _random(words: list[str], _given: bytes) -> bytes:
    assert words[:3] == ["openssl", "rand", "-hex"]
    return secrets.token_hex(int(words[3])).encode() + b"\n"


PROGRAMS: Final[dict[str, Callable[[list[str], bytes], bytes]]] = {
    "chakra": _chakra,
    "openssl": _random,
    "python": _module,
    "zcat": lambda words, _: b"".join(gzip.decompress(Path(w).read_bytes()) for w in words[1:]),
}


def run_python(block: Block, names: dict[str, Any]) -> None:
    """Run a block of Python with the names that the page has so far."""
    exec(compile(block.text, block.page, "exec"), names)
