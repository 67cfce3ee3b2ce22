"""What the tables of runs beside recordings say of samples: errors, and whether they are chance."""

from __future__ import annotations

import numpy as np
import pytest
from benchmark_rows import Error, Samples, operator_errors, operators_off, spread

from chakra_et.benchmark.certificate import OperatorTimes


def samples(recorded: list[int], run: list[int]) -> Samples:
    """Of one process: an operator that takes nearly all of the time, and one that takes little."""
    found = Samples("2 of 2", 1.0)
    for side, times in (("recorded", recorded), ("run", run)):
        found.own[side] = [
            OperatorTimes(ns, {"aten::mm": ns, "aten::t": 1}, {"aten::mm": 1}) for ns in times
        ]
        found.add(side, *times)
    return found


def test_an_error_is_that_of_the_medians_of_all_processes() -> None:
    rounds = [samples([900, 1000, 1100], [1100, 1200, 1300]) for _ in range(3)]
    errors = operator_errors(rounds)
    assert errors.keys() == {"aten::mm"}
    assert errors["aten::mm"].share == pytest.approx(0.2)
    low, high = errors["aten::mm"].interval
    assert 1100 / 1100 - 1 <= low < 0.2 < high <= 1300 / 900 - 1


def test_what_differs_from_process_to_process_widens_the_interval() -> None:
    """Within each process both sides are steady: only other processes tell of the difference."""
    model = np.full((4, 5), 1000.0)
    again = np.array([[1000.0], [1000.0], [1300.0], [1300.0]]).repeat(5, axis=1)
    low, high = Error.of(model, again).interval
    assert low == pytest.approx(0)
    assert high == pytest.approx(0.3)
    assert not Error.of(model, again).beyond_chance
    assert Error.of(model, np.full((4, 5), 1300.0)).interval == pytest.approx((0.3, 0.3))


def test_an_operator_is_off_by_its_median_and_beyond_chance_by_its_interval() -> None:
    sure = [samples([1000] * 3, [1200] * 3) for _ in range(3)]
    assert operators_off(sure) == "1 of 1, 1 beyond chance: mm +20.0% (+20.0% to +20.0%)"
    unsure = [samples([1000] * 3, [run] * 3) for run in (1000, 1200, 1200)]
    assert operators_off(unsure).startswith("1 of 1, 0 beyond chance: mm +20.0% (")
    assert operators_off([samples([1000] * 3, [1050] * 3)]) == "0 of 1"


def test_a_spread_is_in_milliseconds() -> None:
    rounds = [samples([1_000_000], [1]), samples([2_000_000], [1]), samples([4_000_000], [1])]
    assert spread("recorded")(rounds) == "2.00 (1.00 to 4.00)"
