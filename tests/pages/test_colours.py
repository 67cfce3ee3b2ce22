"""Colours of a page can be told apart: the contrasts that WCAG 2.1 asks for, in both themes."""

from __future__ import annotations

import re
from importlib import resources

import pytest

CSS = (resources.files("chakra_et.pages") / "assets" / "page.css").read_text("utf-8")
FILLS = (
    "host", "annotation", "device", "memory", "communication", "compute", "overlap", "transfer",
    "waiting", "gap", "idle", "unknown", "path", "focus",
)  # fmt: skip


def colours(theme: str) -> dict[str, str]:
    start = CSS.index(':root[data-theme="dark"]') if theme == "dark" else 0
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", CSS[start : CSS.index("}", start)]))


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out(theme: str) -> None:
    found = colours(theme)
    for ground in ("ground", "card"):
        for ink in ("ink", "soft", "accent", "waiting", "transfer"):
            assert contrast(found[ink], found[ground]) >= 4.5, (ink, ground)
    for box in ("host", "annotation", "device", "memory", "communication"):
        assert contrast(found["box-ink"], found[box]) >= 4.5, box


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_drawn_stands_out(theme: str) -> None:
    found = colours(theme)
    for fill in FILLS:
        assert contrast(found[fill], found["ground"]) >= 3, fill
