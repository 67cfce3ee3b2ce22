"""Who has asked for a range that lies on its thread and runs beside it."""

from __future__ import annotations

import numpy as np

from chakra_et.columns import NO_ROW
from chakra_et.linker.joining.ranges_beside import callers_of


def test_it_is_the_innermost_operation_that_is_open() -> None:
    # 0 holds 1, which holds the range 2; 3 is a range inside of the range 2.
    nested_in = np.array([NO_ROW, 0, 1, 2])
    start_ns, end_ns = np.array([0, 10, 20, 30]), np.array([100, 90, 80, 70])
    assert callers_of(np.array([2, 3]), nested_in, start_ns, end_ns).tolist() == [1, 1]
    over = np.array([100, 15, 80, 70])
    assert callers_of(np.array([2, 3]), nested_in, start_ns, over).tolist() == [0, 0]
    assert callers_of(np.array([0]), nested_in, start_ns, end_ns).tolist() == [NO_ROW]


def test_ranges_within_ranges_at_any_depth() -> None:
    """To climb step by step from each of 200,000 would take hours."""
    count = 200_000
    rows = np.arange(count)
    found = callers_of(rows[1:], rows - 1, rows, 2 * count - rows)
    assert (found == 0).all()
