"""Packed texts of inputs and outputs: the same as a list and a pool of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.pool import Pool
from chakra_et.recording.packed_texts import OperandTexts, PackedPool, PackedTexts

OPERANDS = st.tuples(*[st.sampled_from([b"", b"[]", b"[1]", b"[[2],[]]", b"\xc3\xa9"])] * 3)


def packed(operands: list[OperandTexts]) -> PackedTexts:
    pools: list[Pool[bytes]] = [Pool(), Pool(), Pool()]
    codes = [[pool[text] for pool, text in zip(pools, item, strict=True)] for item in operands]
    value, shape, type_ = np.array(codes, np.int32).reshape(-1, 3).T
    values = list(pools[0])
    whole = np.frombuffer(b"".join(values), np.uint8)
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
    return PackedTexts(whole, offsets, list(pools[1]), list(pools[2]), value, shape, type_)


@given(st.lists(OPERANDS, unique=True), OPERANDS)
def test_they_are_a_list_and_a_pool(operands: list[OperandTexts], other: OperandTexts) -> None:
    pool, theirs = PackedPool(packed(operands)), Pool(zip(operands, range(99), strict=False))
    assert pool.in_order == operands == PackedTexts.of(operands)
    assert pool.in_order.at(np.arange(len(operands))[::-1]) == operands[::-1]
    assert pool.in_order[-1:] == operands[-1:]
    assert [pool.in_order[at] for at in range(len(operands))] == operands
    assert pool.in_order[1:] == operands[1:]
    assert [pool.get(item) for item in operands] == list(range(len(operands)))
    assert pool.get(other) == theirs.get(other)
    assert pool[other] == theirs[other]
    assert list(pool) == list(theirs) == pool.in_order
    assert len(pool) == len(theirs)
