"""Links between documents lead to files and headings that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from places import ROOT

DOCS = ROOT / "docs"
PAGES = [
    *sorted(ROOT.glob("docs/**/*.md")),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "schema/README.md")),
]
LINK = re.compile(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)")


def headings(page: Path) -> set[str]:
    """The anchors that a viewer makes of the headings of a page."""
    lines = (line for line in page.read_text("utf-8").splitlines() if line.startswith("#"))
    plain = (re.sub(r"[^\w\- ]", "", line.lstrip("# ").lower()) for line in lines)
    return {text.strip().replace(" ", "-") for text in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for file, anchor in LINK.findall(page.read_text("utf-8")):
        if file.startswith(("http:", "https:", "mailto:")):
            continue
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), file
        if anchor and target.suffix == ".md":
            assert anchor in headings(target), f"{file}#{anchor}"
        if DOCS in page.parents:
            assert DOCS in target.parents, f"{file}: the site has only docs/; name the file in full"


def test_the_site_is_written_as_a_list() -> None:
    """Every line of its navigation names a page or a part: none is left of a merge."""
    site = (ROOT / "mkdocs.yml").read_text("utf-8")
    lines = site[site.index("\nnav:\n") + 6 :].splitlines()
    assert [line for line in lines if line and not re.fullmatch(r" +- [\w /.:-]+", line)] == []


def test_the_site_lists_every_page() -> None:
    site = (ROOT / "mkdocs.yml").read_text("utf-8")
    listed = re.findall(r"^ *- (?:\w+: )?([\w/-]+\.md)$", site, re.MULTILINE)
    there = [str(page.relative_to(DOCS)) for page in DOCS.glob("**/*.md")]
    assert sorted(listed) == sorted(there)
