"""Where real traces are, and which files there are traces: those that INDEX.md lists.

Each row of a table in INDEX.md begins with the file, between backticks. Without an index, all files
are taken. Tables, notes and results may thus lie beside the traces.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("CHAKRA_ET_DATA") or ROOT.parent / "shared" / "data")
ROW = re.compile(r"^\| `([^`]+)` \|", re.MULTILINE)


def trace_files(directory: Path, pattern: str = "*") -> Iterator[Path]:
    """The traces below a directory whose relative path matches a pattern, by name.

    Of a pattern, `*` also matches the slash between folders.
    """
    for name in sorted(_names(directory)):
        if fnmatch(name, pattern) and (directory / name).is_file():
            yield directory / name


def _names(directory: Path) -> set[str]:
    index = directory / "INDEX.md"
    if index.is_file():
        return set(ROW.findall(index.read_text("utf-8")))
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*")}
