"""Running the rules of a profile over inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import chakra_et.validators.rules  # noqa: F401  (registers the rules)
from chakra_et.errors import ChakraError
from chakra_et.model import Trace, TraceSet
from chakra_et.validators.finding import Finding, Hits, Severity
from chakra_et.validators.inputs import Inputs, from_paths, from_traces
from chakra_et.validators.profiles import Profile, profile
from chakra_et.validators.rule import RULES, Rule, Subject
from chakra_et.validators.view import RunView

KEPT: Final = 1000
"""Findings of one rule that are kept; further ones are counted."""


@dataclass
class Outcome:
    """What one rule found."""

    rule: Rule
    severity: Severity
    count: int = 0
    """All findings that are not accepted by a baseline."""
    findings: list[Finding] = field(default_factory=list)
    """The first of them."""
    accepted: int = 0
    """Findings that a baseline accepts."""


@dataclass
class Validation:
    """What a profile says of inputs."""

    profile: Profile
    outcomes: list[Outcome]
    """Of the rules that spoke, in order of their ids."""
    unreadable: list[ChakraError]
    paths: list[Path]
    traces: int
    nodes: int

    def __getitem__(self, rule_id: str) -> Outcome:
        """The outcome of a rule; KeyError if it did not speak."""
        for outcome in self.outcomes:
            if outcome.rule.id == rule_id:
                return outcome
        raise KeyError(rule_id)

    @property
    def rules(self) -> set[str]:
        """The ids of the rules that spoke."""
        return {outcome.rule.id for outcome in self.outcomes if outcome.count}

    def count(self, severity: Severity) -> int:
        """How many findings there are of a severity."""
        return sum(o.count for o in self.outcomes if o.severity is severity)

    def exit_code(self, fail_on: Severity = Severity.ERROR) -> int:
        """0 clean; 1 findings of `fail_on` or worse; 2 something could not be read."""
        if self.unreadable:
            return 2
        return int(any(o.count and o.severity >= fail_on for o in self.outcomes))


def validate(
    inputs: Trace | TraceSet | str | Path | Iterable[str | Path],
    profile_name: str = "core",
    *,
    skip_others: bool = False,
) -> Validation:
    """Check traces, files or directories against the rules of a profile.

    With `skip_others`, files that are no traces are passed over. Raises ChakraError for a profile
    that there is not; what cannot be read is told in the result.
    """
    chosen = profile(profile_name)
    if isinstance(inputs, (Trace, TraceSet)):
        return run_rules(from_traces(inputs), chosen)
    paths = [inputs] if isinstance(inputs, (str, Path)) else inputs
    return run_rules(from_paths(paths, skip_others=skip_others), chosen)


def run_rules(inputs: Inputs, chosen: Profile) -> Validation:
    """Run every rule of a profile over every subject that it looks at."""
    outcomes = []
    for rule_id in sorted(chosen.severities):
        rule = RULES[rule_id]
        outcome = Outcome(rule, chosen.severities[rule_id])
        for subject in _subjects(inputs, rule.subject):
            hits = _of_named(subject, rule.check(subject))
            outcome.count += len(hits)
            outcome.findings += hits.first(KEPT - len(outcome.findings))
        if outcome.count:
            outcomes.append(outcome)
    views = [view for run in inputs.runs for view in run.named]
    return Validation(
        chosen,
        outcomes,
        inputs.unreadable,
        inputs.paths,
        len(views),
        sum(len(view.nodes) for view in views),
    )


def _subjects(inputs: Inputs, subject: Subject) -> Iterator[Any]:
    if subject is Subject.FILE:
        yield from inputs.files
    elif subject is Subject.JSON:
        yield from inputs.documents
    elif subject is Subject.RUN:
        yield from inputs.runs
    else:
        for run in inputs.runs:
            yield from run.named


def _of_named(subject: Any, hits: Hits) -> Hits:
    """Of what a rule says of a run, that which is about ranks that somebody asked for."""
    if not isinstance(subject, RunView) or len(subject.named) == len(subject.views):
        return hits
    ranks = {view.rank for view in subject.named}
    return Hits.of([found for found in hits if found.rank is None or found.rank in ranks])
