"""Audit: run all checks over the traces of a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from chakra_et.audit.checks import CHECKS, COMPARING, Subjects
from chakra_et.model import Trace
from chakra_et.validators.engine import KEPT, Outcome, Validation
from chakra_et.validators.profiles import Profile

PROFILE: Final = Profile(
    "audit",
    "giving a trace away",
    "whoever reads it",
    {rule.id: severity for rule, severity in CHECKS.items()},
)


def audit(
    traces: Mapping[int, Trace],
    originals: Mapping[int, Trace] | None = None,
    paths: Mapping[int, Path] | None = None,
) -> Validation:
    """What could still leak from traces, as findings of checks.

    With `originals`, each trace is held against all of them, since ranks may have been shuffled.
    """
    given: list[Trace | None] = [*(originals or {}).values()] or [None]
    outcomes = []
    for rule, severity in CHECKS.items():
        outcome = Outcome(rule, severity)
        for rank, trace in traces.items():
            path = str((paths or {}).get(rank, "")) or None
            # One original that a trace can be linked to is enough.
            for original in given:
                hits = rule.check(Subjects(trace, rank, path, original))
                outcome.count += len(hits)
                outcome.findings += hits.first(KEPT - len(outcome.findings))
                if hits or rule.id not in COMPARING:
                    break
        if outcome.count:
            outcomes.append(outcome)
    nodes = sum(len(trace.nodes) for trace in traces.values())
    return Validation(PROFILE, outcomes, [], list((paths or {}).values()), len(traces), nodes)
