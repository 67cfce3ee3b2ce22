"""Commands that the documentation shows exist, with their options, in running text as well."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main
from places import ROOT

from chakra_et.cli.app import VERBS, command_line

PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
BLOCK = re.compile(r"```(?:console|sh)\n(.*?)```", re.DOTALL)
INLINE = re.compile(r"`(chakra [a-z][^`]*)`")


def commands_of(text: str) -> list[list[str]]:
    """The words of each command in blocks and in running text; comments and pipes left out."""
    lines = [line for block in BLOCK.findall(text) for line in block.splitlines()]
    lines += INLINE.findall(text.replace("\n", " "))
    found = []
    for line in lines:
        words = line.removeprefix("$ ").partition(" #")[0].partition(" | ")[0].strip()
        if words.startswith("chakra "):
            found.append(shlex.split(words.replace("…", "").partition(" > ")[0]))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_on_a_page_exist(page: Path) -> None:
    known: Any = typer.main.get_command(command_line([])).commands  # type: ignore[attr-defined]
    for words in commands_of(page.read_text("utf-8")):
        if words[1].startswith("-") or words[1] == "VERB":
            continue
        assert words[1] in VERBS, words
        command = known[words[1]]
        inner = list(getattr(command, "commands", {"": command}).values())
        options = {o for each in inner for p in each.params for o in (*p.opts, *p.secondary_opts)}
        given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        # What follows a bare -- is another program's.
        if "--" in words:
            given = {w for w in words[: words.index("--")] if re.match(r"--?[a-z]", w)}
        assert given <= {*options, "-h", "--help", "--version"}, words
