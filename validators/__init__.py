"""Checking traces: rules, profiles, and what they find.

>>> from chakra_et.validators import validate
>>> result = validate("run/", "astra-sim")
>>> for outcome in result.outcomes:
...     print(outcome.rule.id, outcome.count, outcome.findings[0].evidence)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.validators.engine import Outcome, Validation, run_rules, validate
    from chakra_et.validators.finding import Finding, Hits, Severity
    from chakra_et.validators.profiles import PROFILES, Profile, profile
    from chakra_et.validators.rule import RULES, Rule, Subject, file_rule, run_rule, trace_rule
    from chakra_et.validators.view import RunView, TraceView

__all__ = [
    "PROFILES",
    "RULES",
    "Finding",
    "Hits",
    "Outcome",
    "Profile",
    "Rule",
    "RunView",
    "Severity",
    "Subject",
    "TraceView",
    "Validation",
    "file_rule",
    "profile",
    "run_rule",
    "run_rules",
    "trace_rule",
    "validate",
]

# Who looks at a trace through a view needs no rules. The engine alone imports them all, so that
# `RULES` is asked of it.
_HOMES: Final = {
    **dict.fromkeys(("Outcome", "RULES", "Validation", "run_rules", "validate"), "engine"),
    **dict.fromkeys(("Finding", "Hits", "Severity"), "finding"),
    **dict.fromkeys(("PROFILES", "Profile", "profile"), "profiles"),
    **dict.fromkeys(("Rule", "Subject", "file_rule", "run_rule", "trace_rule"), "rule"),
    **dict.fromkeys(("RunView", "TraceView"), "view"),
}
__getattr__ = lazily(__name__, _HOMES)
