"""Links between documents lead to files and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from places import ROOT

PAGES = [
    *sorted(ROOT.glob("docs/*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "schema/README.md")),
]
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")


def headings(page: Path) -> set[str]:
    """The anchors that a viewer makes of the headings of a page."""
    lines = (line for line in page.read_text("utf-8").splitlines() if line.startswith("#"))
    plain = (re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()) for line in lines)
    return {text.strip().replace(" ", "-") for text in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for file, anchor in LINK.findall(page.read_text("utf-8")):
        if file.startswith(("http:", "https:", "mailto:")):
            continue
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), file
        if anchor and target.suffix == ".md":
            assert anchor in headings(target), f"{file}#{anchor}"
