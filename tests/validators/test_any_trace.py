"""Laws that hold for any trace, however odd."""

from __future__ import annotations

import json

from hypothesis import given
from strategies import traces

from chakra_et import passes
from chakra_et.errors import ChakraError
from chakra_et.model import Trace, TraceSet
from chakra_et.passes.base import speaking
from chakra_et.validators import PROFILES, RULES, Severity, run_rules
from chakra_et.validators.inputs import from_traces
from chakra_et.validators.output import FORMATS, render
from chakra_et.validators.profiles import Profile

EVERYTHING = Profile("everything", "", "", dict.fromkeys(RULES, Severity.ERROR))


@given(traces())
def test_every_rule_takes_any_trace(trace: Trace) -> None:
    result = run_rules(from_traces(trace), EVERYTHING)
    for outcome in result.outcomes:
        assert 0 < len(outcome.findings) <= outcome.count
    json.loads(render(result, FORMATS["json"]))
    assert render(result, FORMATS["text"])


@given(traces(), traces())
def test_cures_hold_what_they_ensure_or_say_why_not(one: Trace, other: Trace) -> None:
    given_traces = TraceSet({0: one, 1: other})
    for item in passes.pipelines.passes_for("astra-sim", cut=True):
        try:
            result = item(given_traces)
        except ChakraError:
            return
        before = {rule for rule, _, _ in speaking(given_traces, item.ensures)}
        after = {rule for rule, _, _ in speaking(result.traces, item.ensures)}
        assert not after - before, item.name
        given_traces = result.traces


def test_profiles_hold_only_rules_that_there_are() -> None:
    assert all(set(p.severities) <= set(RULES) for p in PROFILES.values())
