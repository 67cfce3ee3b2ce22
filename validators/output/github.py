"""Findings as workflow commands: GitHub shows them beside the commit."""

from __future__ import annotations

from typing import Final

from chakra_et.shown import shown_lines
from chakra_et.validators.engine import Validation
from chakra_et.validators.finding import Severity

_COMMANDS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(result: Validation, examples: int = 3) -> str:
    """A command for each of the first findings of a rule; the last one tells how many more."""
    lines = [f"::error title=unreadable::{_data(str(error))}" for error in result.unreadable]
    for outcome in result.outcomes:
        shown = outcome.findings[:examples]
        for place, finding in enumerate(shown):
            file = f"file={_property(finding.path)}," if finding.path else ""
            text = f"{finding.place}: {finding.evidence}" if finding.place else finding.evidence
            if place == len(shown) - 1 and outcome.count > len(shown):
                text += f" (and {outcome.count - len(shown)} more)"
            title = _property(f"{outcome.rule.id} {outcome.rule.title}")
            command = _COMMANDS[outcome.severity]
            lines.append(f"::{command} {file}title={title}::{_data(text)}")
    return "".join(f"{line}\n" for line in lines)


def _data(text: str) -> str:
    return shown_lines(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
