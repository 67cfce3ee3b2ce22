"""What the table of interventions says of figures: errors, noise, and what simpler ways reach."""

from __future__ import annotations

import numpy as np
import pytest
from foretelling import Foretold
from interventions import table


def foretold(name: str, after: list[float], found: float, same: float) -> Foretold:
    spans = np.array([same] * len(after))
    naive = np.array([spans, spans * 1.1, spans * 0.9, spans, spans])
    return Foretold(name, "something", ("a=b|c",), spans, np.array(after),
                    np.full(len(after), found), naive, spans, others=0.012)  # fmt: skip


def test_an_error_is_that_of_medians_beyond_the_spread_of_both_sides() -> None:
    one = foretold("one", [98.0, 99, 100, 101, 102], 104.0, 50.0)
    assert one.error == pytest.approx(0.04)
    assert one.noise == pytest.approx(0.01)
    assert one.beyond == pytest.approx(0.03)
    assert one.naive_errors == pytest.approx([-0.5, -0.45, -0.55, -0.5, -0.5])
    assert one.shared_error == pytest.approx(-0.5)
    assert one.better()
    assert one.verdict == "closer"


def test_a_simpler_way_that_is_closer_counts_beyond_the_noise_alone() -> None:
    near = foretold("near", [98.0, 99, 100, 101, 102], 100.5, 100.0)
    assert not near.better()
    assert near.better(near.noise)
    assert near.verdict == "as close"
    far = foretold("far", [98.0, 99, 100, 101, 102], 110.0, 100.0)
    assert not far.better(far.noise)
    assert far.verdict == "not as close"


def test_as_close_as_a_simpler_way_is_not_closer() -> None:
    alike = foretold("alike", [100.0] * 5, 103.0, 103.0)
    assert alike.better()
    assert not alike.closer
    assert alike.verdict == "as close"


def test_the_table_counts_and_says_what_failed() -> None:
    found = [foretold("one", [100.0] * 5, 101.0, 50.0), foretold("two", [100.0] * 5, 120.0, 100.0)]
    text = "\n".join(table(found, {"three": "ranks wait for each other"}))
    assert text.startswith("three could not be foretold: ranks wait for each other")
    assert "2 kinds, 5 recordings each side: median error 10.5%" in text
    assert "1 kinds within 3% beyond the noise. Closer than every simpler way in 1" in text
    assert "Other programs took up to 1.2% of the processors" in text
    assert "With `processors" not in text
    row = r"| two: something | `a=b\|c` | 0.0 | 0.0 | 0.0% | +20.0% | 20.0% | not as close |"
    assert row in text
    assert list(table([], {"one": "why"})) == ["one could not be foretold: why\n"]


def test_where_ranks_share_processors_the_best_simpler_way_stands_for_all() -> None:
    found = [foretold("one", [100.0] * 5, 101.0, 110.0)]
    text = "\n".join(table(found, simpler=False))
    assert "With `processors=2,known::wait`: median error 10.0%" in text
    assert text.endswith("| as close | -1.0% | +10.0% |")
