"""The order in which host nodes began: by their numbers, callers before what they called."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.columns import NO_ROW
from chakra_et.linker.activities import begin_order

LARGE = (1 << 64) - 9
"""Numbers from here on do not fit into 63 bits, nor exactly into floating point."""


class Host:
    """All that the order of a host trace depends on."""

    def __init__(self, numbers):
        self.id = np.array(numbers, np.uint64)

    def __len__(self):
        return len(self.id)


@st.composite
def calls(draw):
    """Numbers of nodes, and the row of each one's caller."""
    numbers = draw(
        st.lists(
            st.one_of(st.integers(0, 8), st.integers(LARGE, LARGE + 8)), unique=True, max_size=8
        )
    )
    caller = [draw(st.integers(NO_ROW, row - 1)) for row in range(len(numbers))]
    return numbers, caller


@given(calls())
def test_callers_begin_no_later_than_the_first_of_what_they_called(of):
    numbers, caller = of
    begun, depth = list(numbers), [0] * len(numbers)
    for row in reversed(range(len(numbers))):
        if caller[row] != NO_ROW:
            begun[caller[row]] = min(begun[caller[row]], begun[row])
    for row in range(len(numbers)):
        if caller[row] != NO_ROW:
            depth[row] = depth[caller[row]] + 1
    expected = sorted(range(len(numbers)), key=lambda row: (begun[row], depth[row], numbers[row]))
    place = begin_order(Host(numbers), np.array(caller, np.int64))
    assert np.argsort(place).tolist() == expected
