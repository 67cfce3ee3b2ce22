"""Operators that only call others: all that they do is in what they have called."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from chakra_et.benchmark.schema import Schema

_FILE: Final = Path(__file__).with_name("composite.txt")
"""From PyTorch 2.13, by `tools/composite_operators.py`."""


_CHOOSE: Final = frozenset(
    f"aten::{name}"
    for name in (
        "embedding_bag", "gru", "lstm", "matmul", "max_pool1d", "rnn_relu", "rnn_tanh",
        "scaled_dot_product_attention",
    )
)  # fmt: skip
"""Operators that call others where gradients are needed than where they are not."""


@cache
def _names() -> frozenset[str]:
    return frozenset(_FILE.read_text().split())


def is_composite(schema: Schema | None) -> bool:
    """Whether PyTorch composes an operator of others, for its gradient, too."""
    if schema is None:
        return False
    overload = "" if schema.overload == "default" else f".{schema.overload}"
    return f"{schema.qualified}{overload}" in _names()


def chooses_by_gradient(schema: Schema | None) -> bool:
    """Whether an operator may call others when it runs again, where no gradient is needed."""
    return schema is not None and schema.qualified in _CHOOSE and is_composite(schema)
