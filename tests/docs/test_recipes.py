"""docs/recipes.md names files that exist, and what it calls a registry is complete."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import iter_modules

import pytest
from places import ROOT

from chakra_et import passes
from chakra_et.cli.app import VERBS, command_name
from chakra_et.converters.format import Format
from chakra_et.converters.formats import FORMATS
from chakra_et.linker.evidence import Evidence
from chakra_et.model import EdgeKind
from chakra_et.passes import Pass
from chakra_et.validators import PROFILES, RULES

RECIPES = (ROOT / "docs" / "recipes.md").read_text("utf-8").split("\n## ")[1:]
PATH = re.compile(r"`((?:chakra_et|converters|validators|schema|docs|tests|tools)/[\w./]*)`")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda text: text.partition("\n")[0])
def test_files_of_a_recipe_exist(recipe: str) -> None:
    named = PATH.findall(recipe)
    assert named
    for path in named:
        assert list(ROOT.glob(path.replace("NAME", "*").rstrip("/"))), path


def test_files_of_the_design_exist() -> None:
    """Where a row names further files, they lie in the folder of the one before."""
    text = (ROOT / "docs" / "design.md").read_text("utf-8")
    for line in text.split("## The model")[0].splitlines():
        folder = None
        for path in re.findall(r"`([\w./]+\.py|[\w]+/[\w./]*)`", line):
            at = ROOT / path
            if not at.exists() and folder is not None:
                at = folder / path
            assert at.exists(), path
            folder = at.parent if at.is_file() else at


def test_every_folder_of_a_format_is_in_the_registry() -> None:
    for path in ROOT.glob("converters/*/format.py"):
        module = import_module(f"chakra_et.converters.{path.parent.name}.format")
        made = [value for value in vars(module).values() if isinstance(value, Format)]
        assert made
        assert all(form in FORMATS for form in made), path


def test_every_edge_kind_has_evidence_and_stands_in_the_documents() -> None:
    schema = (ROOT / "schema" / "README.md").read_text("utf-8")
    edges = (ROOT / "docs" / "edges.md").read_text("utf-8")
    for kind in EdgeKind:
        assert any(evidence.kind is kind for evidence in Evidence)
        assert f"| `{kind.label}` |" in schema
        assert f"`{kind.label}`" in edges


def test_every_rule_has_a_severity() -> None:
    assert {rule for profile in PROFILES.values() for rule in profile.severities} == set(RULES)


def test_every_pass_is_exported() -> None:
    made = {
        value.name
        for found in iter_modules(passes.__path__)
        for value in vars(import_module(f"chakra_et.passes.{found.name}")).values()
        if isinstance(value, Pass)
    }
    told = (getattr(passes, name) for name in passes.__all__)
    exported = {value.name for value in told if isinstance(value, Pass)}
    assert made == exported


def test_every_verb_has_a_module() -> None:
    for verb, (module, _) in VERBS.items():
        assert hasattr(import_module(f"chakra_et.cli.{module}"), command_name(verb))
