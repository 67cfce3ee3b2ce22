"""Paths that stand for URLs.

A path keeps one slash of the two behind a scheme: `s3:/bucket/run` is what `s3://bucket/run`
becomes as a path, and both are the same here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from chakra_et.patterns import lazy_pattern

_URL: Final = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)", re.DOTALL)
"""One letter is a drive, not a scheme."""
_LOCAL: Final = ("file", "local")


def url_of(path: str | Path) -> str | None:
    """The URL that a path stands for; None if it is a path of this machine."""
    match = _URL.match(str(path))
    if match is None:
        return None
    scheme, rest = match[1].lower(), match[2]
    return f"{scheme}:///{rest}" if scheme in _LOCAL else f"{scheme}://{rest}"


def shown_path(path: str | Path) -> str:
    """A path, or the URL that it stands for, for people."""
    return url_of(path) or str(path)


def is_of_this_process(url: str) -> bool:
    """Whether no other process sees these files."""
    return url.startswith("memory:")
