"""The page about pages: its pictures are there, small, and beside the commands that make them."""

from __future__ import annotations

import re

import pytest
from places import ROOT

make_pictures = pytest.importorskip("make_pictures")
TEXT = (ROOT / "docs" / "pages.md").read_text("utf-8")


@pytest.mark.parametrize("picture", make_pictures.ALL, ids=lambda picture: picture.name)
def test_a_picture_stands_beside_its_commands(picture: make_pictures.Picture) -> None:
    assert f"](pictures/{picture.name}.png)" in TEXT
    for command in picture.commands:
        assert f"$ {command}\n" in TEXT
    size = (ROOT / "docs" / "pictures" / f"{picture.name}.png").stat().st_size
    assert size < make_pictures.MOST_BYTES


def test_all_pictures_are_made_and_say_what_they_show() -> None:
    shown = dict(re.findall(r"!\[([^\]]*)\]\(pictures/([a-z]+)\.png\)", TEXT))
    assert sorted(shown.values()) == sorted(picture.name for picture in make_pictures.ALL)
    assert all(len(words) > 20 for words in shown)
