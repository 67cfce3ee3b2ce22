"""Findings as a JUnit report: a test case for each rule of the profile."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from chakra_et.shown import shown
from chakra_et.validators.engine import Outcome, Validation
from chakra_et.validators.finding import Severity
from chakra_et.validators.rule import RULES


def render(result: Validation, examples: int = 3) -> str:
    """Errors and warnings are failures; a rule that only informs passes, and tells its output."""
    spoke = {o.rule.id: o for o in result.outcomes if o.count}
    failed = [o for o in spoke.values() if o.severity > Severity.INFO]
    suite = Xml.Element(
        "testsuite",
        name=f"chakra validate ({result.profile.name})",
        tests=str(len(result.profile.severities) + len(result.unreadable)),
        failures=str(len(failed)),
        errors=str(len(result.unreadable)),
    )
    for rule_id in sorted(result.profile.severities):
        case = Xml.SubElement(
            suite,
            "testcase",
            classname=RULES[rule_id].group,
            name=f"{rule_id} {RULES[rule_id].title}",
        )
        if rule_id in spoke:
            _tell(case, spoke[rule_id], examples)
    for error in result.unreadable:
        case = Xml.SubElement(suite, "testcase", classname="file", name=shown(str(error.path)))
        Xml.SubElement(case, "error", message=_clean(error.problem)).text = _clean(str(error))
    Xml.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(suite, "unicode") + "\n"


def _tell(case: Xml.Element, outcome: Outcome, examples: int) -> None:
    lines = [f"{f.place}: {f.evidence}" for f in outcome.findings[: max(examples, 20)]]
    if outcome.count > len(lines):
        lines.append(f"and {outcome.count - len(lines)} more")
    text = _clean("\n".join([*lines, f"fix: {outcome.rule.cure}"]))
    if outcome.severity is Severity.INFO:
        Xml.SubElement(case, "system-out").text = text
    else:
        message = f"{outcome.count} findings ({outcome.severity.label})"
        Xml.SubElement(case, "failure", message=message, type=outcome.rule.id).text = text


def _clean(text: str) -> str:
    """Text without the characters that XML does not have; names of nodes may hold any."""
    return "".join(c for c in text if c in "\t\n\r" or 0x20 <= ord(c) < 0xD800 or ord(c) >= 0xE000)
