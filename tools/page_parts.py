"""The part of a page that a tool makes, which stands between two marks."""

from __future__ import annotations

import difflib
from pathlib import Path

SHOWN = 12
"""Lines of a difference that are told."""


def keep(page: Path, begin: str, end: str, made: str, *, check: bool) -> int:
    """Write what was made between the marks of a page, or tell where it differs: an exit code."""
    text = page.read_text("utf-8")
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    wanted = f"{before}{begin}\n{made}\n{end}{after}"
    return keep_all(page, wanted, check=check)


def keep_all(page: Path, wanted: str, *, check: bool) -> int:
    """The same for a page that a tool makes from its first line to its last."""
    text = page.read_text("utf-8")
    if text == wanted:
        print(f"current  {page.name}")
    elif check:
        print(f"stale    {page.name}\n{difference(page.name, text, wanted)}")
    else:
        page.write_text(wanted, "utf-8")
        print(f"written  {page.name}")
    return int(check and text != wanted)


def difference(path: str, old: str, new: str) -> str:
    """The first lines in which a page is out of date."""
    lines = list(
        difflib.unified_diff(old.splitlines(), new.splitlines(), path, "made", n=0, lineterm="")
    )
    shown = [line[:120] for line in lines[:SHOWN]]
    if len(lines) > len(shown):
        shown.append(f"... and {len(lines) - len(shown)} more lines")
    return "\n".join(shown)
