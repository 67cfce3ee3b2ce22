"""Findings for people: grouped by rule, counted, with the first examples."""

from __future__ import annotations

import io
from typing import Final

from rich.console import Console

from chakra_et.errors import ChakraError
from chakra_et.shown import line, number_of
from chakra_et.validators.engine import Outcome, Validation
from chakra_et.validators.finding import Finding, Severity
from chakra_et.validators.profiles import PROFILES, profile
from chakra_et.validators.rule import RULES

_STYLES: Final = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


def show(result: Validation, examples: int = 3, console: Console | None = None) -> None:
    """Print a validation."""
    console = console or Console(highlight=False, soft_wrap=True)
    for error in result.unreadable:
        console.print(line(f"unreadable: {error}", style="red"))
    several = len(result.paths) > 1
    for outcome in sorted(result.outcomes, key=lambda o: (-o.severity, o.rule.id)):
        if outcome.count:
            _show_outcome(console, outcome, examples, several)
    console.print(line(_summary(result), style="bold"))


def render(result: Validation, examples: int = 3) -> str:
    """The same as text without colours."""
    buffer = io.StringIO()
    show(result, examples, Console(file=buffer, highlight=False, soft_wrap=True, width=10_000))
    return buffer.getvalue()


def _show_outcome(console: Console, outcome: Outcome, examples: int, several: bool) -> None:
    rule, style = outcome.rule, _STYLES[outcome.severity]
    head = line(f"{outcome.severity.label} {rule.id}", style=f"bold {style}")
    console.print(head.append(f" ({outcome.count}) {rule.title}", style="default"))
    for finding in outcome.findings[:examples]:
        console.print(line(f"    {_line(finding, several)}"))
    if outcome.count > examples:
        console.print(line(f"    and {outcome.count - examples} more", style="dim"))
    console.print(line(f"  fix: {rule.cure}", style="dim"))


def _line(finding: Finding, several: bool) -> str:
    """A finding; with its file, where that is not plain from the node."""
    place = finding.place
    if finding.path and (several or finding.node is None):
        place = f"{finding.path}" + (f" ({place})" if place else "")
    return f"{place}: {finding.evidence}" if place else finding.evidence


def _summary(result: Validation) -> str:
    found = [number_of(result.count(s), s.label) for s in (Severity.ERROR, Severity.WARNING)]
    found.append(f"{result.count(Severity.INFO)} info")
    accepted = sum(o.accepted for o in result.outcomes)
    if accepted:
        found.append(f"{accepted} accepted")
    read = (
        number_of(len(result.paths), "file"),
        number_of(result.traces, "trace"),
        number_of(result.nodes, "node"),
    )
    return f"{result.profile.name}: {', '.join(found)}; {', '.join(read)}"


def show_rule(rule_id: str) -> None:
    """Print what a rule is about. Raises ChakraError for an id that none has."""
    rule = RULES.get(rule_id)
    if rule is None:
        raise ChakraError(
            f"unknown rule {rule_id}", remedy="`chakra explain` without a rule lists them."
        )
    console = Console(highlight=False, soft_wrap=True)
    console.print(line(f"{rule.id}: {rule.title}", style="bold"))
    for label, text in (
        ("detects", rule.check.__doc__ or ""),
        ("why", rule.why),
        ("fix", rule.cure),
        ("looks at", rule.subject.value),
        (
            "in",
            ", ".join(
                f"{p.name} ({p.severities[rule.id].label})"
                for p in PROFILES.values()
                if rule.id in p
            )
            or "no profile",
        ),
    ):
        console.print(line(f"  {label + ':':<10}{text}"))


def show_rules(profile_name: str | None) -> None:
    """Print the rules, all of them or those of a profile."""
    console = Console(highlight=False, soft_wrap=True)
    chosen = None if profile_name is None else profile(profile_name)
    if chosen is not None:
        console.print(line(f"{chosen.name}: {chosen.about} ({chosen.consumer})", style="bold"))
    for rule_id in sorted(RULES):
        if chosen is None:
            console.print(line(f"{rule_id}  {RULES[rule_id].title}"))
        elif rule_id in chosen:
            severity = chosen.severities[rule_id].label
            console.print(line(f"{rule_id}  {severity:<8} {RULES[rule_id].title}"))
