"""Constants fitted to measured steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chakra_et.errors import ChakraError
from chakra_et.estimate import Constants, Machine, Measured, case_of_plan, fit, load_constants
from chakra_et.network import load_topology
from chakra_et.workloads import Model, Plan, Recompute, device

START = Constants()
MACHINE = Machine(device("a100-40gb"), load_topology("dgx-a100"), START)


def like_vtrain(hidden: int, layers: int, tp: int, dp: int, pp: int, gbs: int, mbs: int) -> Plan:
    """A row of vTrain's table of one node, as tools/estimate_vtrain.py reads it."""
    model = Model(
        name="GPT", layers=layers, hidden=hidden, heads=16, ffn=4 * hidden, vocabulary=50257,
        gated=False, bias=True, norm_bias=True, tied=True, positions=1024, dropout=True,
    )  # fmt: skip
    return Plan(
        model=model, tp=tp, dp=dp, pp=pp, micro_batch=mbs, global_batch=gbs, sequence=1024, zero=0,
        gradient_bytes=2, recompute=Recompute.FULL, dtype="fp16", vocabulary_multiple=128,
    )  # fmt: skip


CASES = [
    case_of_plan(like_vtrain(*shape), MACHINE)
    for shape in (
        (1024, 2, 1, 2, 1, 4, 1),
        (1024, 4, 1, 2, 1, 16, 8),
        (1024, 2, 1, 2, 1, 16, 8),
        (2048, 2, 2, 1, 1, 8, 8),
        (2048, 2, 4, 1, 1, 1, 1),
        (1024, 2, 1, 1, 2, 4, 1),
    )
]


def measured(truth: Constants) -> list[Measured]:
    """What the cases would take if these constants were true."""
    return [Measured(case, case.run(case.costs(truth)).step_ns) for case in CASES]


@settings(max_examples=5, deadline=None)
@given(st.floats(0.7, 1.5), st.floats(0.7, 1.5), st.floats(0.7, 1.5))
def test_a_fit_finds_constants_that_explain_the_steps(a: float, b: float, c: float) -> None:
    truth = replace(
        START,
        launch_ns=START.launch_ns * a,
        score_passes=START.score_passes * b,
        kernel_ns=START.kernel_ns * c,
    )
    known = measured(truth)
    found = fit(known, START)
    errors = [abs(one.case.run(one.case.costs(found)).step_ns / one.step_ns - 1) for one in known]
    assert sum(errors) / len(errors) < 0.01


def test_what_is_not_fitted_stays() -> None:
    truth = replace(START, launch_ns=100_000)
    found = fit(measured(truth), START, ("launch_ns",))
    assert found.launch_ns == pytest.approx(100_000, rel=0.02)
    assert replace(found, launch_ns=START.launch_ns) == START


def test_an_efficiency_stays_below_one() -> None:
    fast = [Measured(one.case, one.step_ns / 100) for one in measured(START)]
    assert fit(fast, START, ("matrix_efficiency",)).matrix_efficiency <= 1


def test_nothing_measured() -> None:
    with pytest.raises(ChakraError, match="nothing was measured"):
        fit([], START)


# Rows of vTrain's data/single.csv that were not fitted (MIT, KAIST 2024): shape, and ms.
ROWS = [
    ((1024, 12, 4, 1, 2, 16, 8), 105.406619),
    ((2048, 20, 1, 1, 2, 4, 2), 193.448269),
    ((1024, 24, 4, 1, 1, 8, 1), 687.125635),
    ((1024, 16, 1, 1, 4, 4, 1), 112.626697),
    ((2048, 24, 1, 8, 1, 64, 2), 569.740946),
    ((1024, 16, 2, 1, 2, 16, 4), 154.53795),
    ((2048, 20, 2, 1, 4, 8, 2), 190.418262),
]


def test_measured_steps() -> None:
    machine = replace(MACHINE, constants=load_constants())
    errors = [
        abs(case_of_plan(like_vtrain(*shape), machine).run().step_ns / 1e6 / measured_ms - 1)
        for shape, measured_ms in ROWS
    ]
    assert sum(errors) / len(errors) < 0.11
    assert max(errors) < 0.22
