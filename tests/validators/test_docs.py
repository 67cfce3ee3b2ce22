"""The page about rules is current."""

from __future__ import annotations

import re
from pathlib import Path

import rules_reference

from chakra_et import passes
from chakra_et.passes import Pass
from chakra_et.validators import PROFILES, RULES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "validators.md").read_text()


def test_table_of_rules() -> None:
    assert rules_reference.table() in PAGE
    assert set(RULES) <= set(re.findall(r"ET\d{3}", rules_reference.table()))


def test_table_of_passes() -> None:
    for item in vars(passes).values():
        if isinstance(item, Pass):
            row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{item.name}`"))
            assert set(re.findall(r"ET\d{3}", row.split("|")[3])) == item.ensures


def test_profiles_are_named() -> None:
    assert all(f"`{name}`" in PAGE for name in PROFILES)
