"""Findings as one JSON document."""

from __future__ import annotations

from chakra_et.io.json_text import to_json
from chakra_et.validators.engine import Validation
from chakra_et.validators.finding import Severity


def render(result: Validation, examples: int = 3) -> str:
    """Everything that was kept, whatever the number of examples for people."""
    content = {
        "profile": result.profile.name,
        "consumer": result.profile.consumer,
        "counts": {severity.label: result.count(severity) for severity in Severity},
        "traces": result.traces,
        "nodes": result.nodes,
        "files": [str(path) for path in result.paths],
        "unreadable": [
            {"path": str(error.path), "problem": error.problem} for error in result.unreadable
        ],
        "rules": [
            {
                "id": outcome.rule.id,
                "severity": outcome.severity.label,
                "title": outcome.rule.title,
                "cure": outcome.rule.cure,
                "count": outcome.count,
                "accepted": outcome.accepted,
                "findings": [
                    {
                        "rank": finding.rank,
                        "node": finding.node,
                        "name": finding.name,
                        "path": finding.path,
                        "evidence": finding.evidence,
                        "fingerprint": finding.fingerprint(outcome.rule.id),
                    }
                    for finding in outcome.findings
                ],
            }
            for outcome in result.outcomes
        ],
    }
    return to_json(content).decode()
