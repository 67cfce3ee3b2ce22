"""A page as HTML: one file with everything in it, which asks nothing of any network."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

from chakra_et.extras import needing
from chakra_et.pages.grid import Part, Section
from chakra_et.pages.sections import LABELS
from chakra_et.pages.timeline import Timeline
from chakra_et.shown import encodable
from chakra_et.version import PRODUCER

_KINDS: Final = {
    "host": "host operators and calls",
    "annotation": "annotations",
    "device": "device work",
    "memory": "copies and memory",
    "communication": "communication",
    "path": "critical path",
}


@dataclass(frozen=True)
class Tile:
    """A figure of the overview, and what it means."""

    label: str
    value: str
    meaning: str


@dataclass
class Page:
    """What the template shows.

    `steps` has name, begin and end of each step, in ns from the begin of the timeline; `rank_bars`
    rank, bar, width in per cent and words of the ranks of the overview; `path_top` names on the
    path, their times and shares.
    """

    title: str
    subtitle: str
    source: str
    verdict: str
    sections: list[Section]
    tiles: list[Tile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ranks: list[str] = field(default_factory=list)
    steps: list[tuple[str, int, int]] = field(default_factory=list)
    path_bar: list[Part] = field(default_factory=list)
    path_legend: list[tuple[str, str]] = field(default_factory=list)
    path_words: str = ""
    path_top: list[tuple[str, str, str]] = field(default_factory=list)
    rank_bars: list[tuple[int, list[Part], float, str]] = field(default_factory=list)
    ranks_left_out: int = 0
    timeline: Timeline | None = None
    has_path: bool = False
    producer: str = PRODUCER
    bokeh: str = ""
    part_legend: tuple[tuple[str, str], ...] = tuple(LABELS.items())
    kind_legend: tuple[tuple[str, str], ...] = tuple(_KINDS.items())


def render(page: Page) -> str:
    """The page as HTML. Raises ChakraError where the libraries that draw it are missing."""
    with needing("a page", "report", "bokeh"):
        import bokeh
        from bokeh.resources import Resources
        from jinja2 import Environment
        from markupsafe import Markup
    page.bokeh = bokeh.__version__
    library = Resources(mode="inline", components=["bokeh", "bokeh-api"], log_level="error")
    scripts = ["\n".join(library.js_raw), _asset("page.js"), _asset("timeline.js")]
    # Whatever comes from a trace is escaped by the template.
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    drawn = {} if page.timeline is None else page.timeline.as_dict()
    return environment.from_string(_asset("page.html.j2")).render(
        page=page,
        css=Markup(_asset("page.css")),
        scripts=[Markup(script) for script in scripts],
        policy=_policy(scripts),
        timeline=Markup(_json(drawn)),
    )


def _asset(name: str) -> str:
    return (resources.files("chakra_et.pages") / "assets" / name).read_text("utf-8")


def _policy(scripts: list[str]) -> str:
    """What a browser may do on the page: run these scripts, and load nothing."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _json(content: Any) -> str:
    """JSON that may stand in an element of a page: no text in it can end that element."""
    told = json.dumps(encodable(content), separators=(",", ":"), ensure_ascii=False)
    for char in "<>&\u2028\u2029":
        told = told.replace(char, f"\\u{ord(char):04x}")
    return told
