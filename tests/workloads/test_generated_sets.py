"""Whatever the plan, the traces fit together and nothing is wrong with them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from llm_plans import interleaved, plans, with_experts

import chakra_et
from chakra_et.workloads import Plan, Roofline, device, generate

A100 = Roofline(device("a100"))


@settings(max_examples=20)
@given(plans | interleaved | with_experts, st.booleans(), st.sampled_from([-1, 0, 5000, 60000]))
def test_no_set_has_findings(plan: Plan, overlap: bool, bucket: int) -> None:
    traces = generate(replace(plan, overlap=overlap, bucket=bucket), A100)
    found = chakra_et.validate(traces, "astra-sim").outcomes
    # One rank alone is no set for a simulator of networks (ET709).
    assert [outcome.rule.id for outcome in found] in ([], ["ET709"])
    assert len(traces) > 1 or not any(n.comm_size for n in traces[0].nodes)
