"""Columns that grow piece by piece."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et import narrow
from chakra_et.growing import Growing


@given(
    pieces=st.lists(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=5), max_size=9),
    dtype=st.sampled_from([np.int32, np.int64]),
    many=st.sampled_from([1, 5, 1000]),
)
def test_a_growing_column_holds_all_pieces_in_order(
    pieces: list[list[int]], dtype: type[np.signedinteger[object]], many: int
) -> None:
    """Whether it is packed while it grows or not."""
    columns = Growing()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrow, "MANY", many)
        for piece in pieces:
            columns.put("a", np.array(piece, dtype))
        found = columns.column("a", dtype)
    assert found.tolist() == [value for piece in pieces for value in piece]
    assert found.dtype == dtype
    assert columns.column("b", np.uint8).dtype == np.uint8


def test_a_long_column_takes_few_bits_while_it_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrow, "MANY", 100)
    columns = Growing()
    for _ in range(10):
        columns.put("a", np.arange(100))
    held = columns.held("a")
    assert isinstance(held, narrow.Numbers)
    assert held._narrow.nbytes == 1000
