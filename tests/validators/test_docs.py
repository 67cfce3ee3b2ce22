"""The page about rules is current."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

from chakra_et import passes
from chakra_et.passes import Pass
from chakra_et.validators import PROFILES, RULES

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
reference = importlib.import_module("rules_reference")
PAGE = (ROOT / "docs" / "validators.md").read_text()


def test_table_of_rules() -> None:
    assert reference.table() in PAGE
    assert set(RULES) <= set(re.findall(r"ET\d{3}", reference.table()))


def test_table_of_passes() -> None:
    for item in vars(passes).values():
        if isinstance(item, Pass):
            row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{item.name}`"))
            assert set(re.findall(r"ET\d{3}", row.split("|")[3])) == item.ensures


def test_profiles_are_named() -> None:
    assert all(f"`{name}`" in PAGE for name in PROFILES)
