"""Equal pieces of bytes, found side by side."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.converters.et.distinct import distinct, pooled
from chakra_et.converters.et.side_by_side import Wire
from chakra_et.pool import Pool

PIECES = st.lists(st.text("ab", max_size=20).map(str.encode) | st.binary(max_size=80), max_size=40)


@given(PIECES)
def test_pieces_have_one_model_where_their_bytes_are_equal(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    size = np.array([len(piece) for piece in pieces], np.int64)
    end = np.cumsum(size)
    at = end - size
    wire = Wire(np.frombuffer(data, np.uint8))
    first, code = distinct(wire, at, end)
    assert [pieces[i] for i in first[code]] == pieces
    short = {piece for piece in pieces if len(piece) <= 64}
    assert len(first) == len(short) + sum(len(piece) > 64 for piece in pieces)
    pool: Pool[bytes] = Pool()
    assert [pool.in_order[i] for i in pooled(pool, wire, data, at, end)] == pieces
