"""Findings as SARIF 2.1.0, which code hosts show beside the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from chakra_et.io.json_text import to_json
from chakra_et.validators.engine import Validation
from chakra_et.validators.finding import Finding, Severity
from chakra_et.version import PRODUCER

_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def render(result: Validation, examples: int = 3) -> str:
    """Every finding that was kept as a result, every rule of the profile that spoke as a rule."""
    name, _, version = PRODUCER.partition(" ")
    rules = [
        {
            "id": o.rule.id,
            "shortDescription": {"text": o.rule.title},
            "fullDescription": {"text": o.rule.why},
            "help": {"text": o.rule.cure},
            "defaultConfiguration": {"level": _LEVELS[o.severity]},
        }
        for o in result.outcomes
    ]
    results = [
        _result(finding, o.rule.id, place, _LEVELS[o.severity])
        for place, o in enumerate(result.outcomes)
        for finding in o.findings
    ]
    notices = [{"level": "error", "message": {"text": str(error)}} for error in result.unreadable]
    run = {
        "tool": {"driver": {"name": name, "version": version, "rules": rules}},
        "results": results,
        "invocations": [
            {
                "executionSuccessful": not result.unreadable,
                "toolExecutionNotifications": notices,
            }
        ],
    }
    content = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return to_json(content).decode()


def _result(finding: Finding, rule_id: str, place: int, level: str) -> dict[str, Any]:
    message = f"{finding.place}: {finding.evidence}" if finding.place else finding.evidence
    result: dict[str, Any] = {
        "ruleId": rule_id,
        "ruleIndex": place,
        "level": level,
        "message": {"text": message},
        "partialFingerprints": {"finding/v1": finding.fingerprint(rule_id)},
    }
    location: dict[str, Any] = {}
    if finding.path:
        uri = Path(finding.path).as_posix()
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}}
    if finding.node is not None:
        location["logicalLocations"] = [
            {"fullyQualifiedName": f"rank {finding.rank}/node {finding.node}", "kind": "object"}
        ]
    if location:
        result["locations"] = [location]
    return result
