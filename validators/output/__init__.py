"""How findings are told: to people, to CI, to other tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from chakra_et.validators.engine import Validation
from chakra_et.validators.output import github, junit, plain_json, sarif, text

show = text.show

FORMATS: Final[dict[str, Callable[[Validation, int], str]]] = {
    "text": text.render,
    "json": plain_json.render,
    "sarif": sarif.render,
    "github": github.render,
    "junit": junit.render,
}
"""A function for each format, which takes a validation and the number of examples for people."""


def render(result: Validation, form: Callable[[Validation, int], str], examples: int = 3) -> str:
    """The text of a validation in a form."""
    return form(result, examples)


__all__ = ["FORMATS", "render", "show"]
