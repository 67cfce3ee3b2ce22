"""Operators: shapes, work and bytes moved, each defined once.

A multiply and an add count as two FLOP. FLOP are those of matrix products; what an operator does
element by element is kept apart, as memory bounds it. Bytes moved are inputs and outputs, each
once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from chakra_et.build import DTYPES

Shape = tuple[int, ...]

_KINDS: Final = 1024
"""So many linear operators are remembered with their gradients: every pass asks for them."""


@dataclass(frozen=True)
class Operator:
    """One operator on one rank; `flops` are of products, `pointwise` of all else."""

    name: str
    op_type: str
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    flops: int = 0
    pointwise: int = 0
    dtype: str = "bf16"
    moved: int | None = None

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written."""
        if self.moved is not None:
            return self.moved
        return DTYPES[self.dtype][0] * sum(map(math.prod, (*self.inputs, *self.outputs)))

    def named(self, name: str) -> Operator:
        """The same operator under another name."""
        return replace(self, name=name)


def product(name: str, left: Shape, right: Shape, out: Shape, flops: int, dtype: str) -> Operator:
    """A product of two matrices, batched or not."""
    return Operator(name, "matmul", (left, right), (out,), flops=flops, dtype=dtype)


def linear(name: str, x: Shape, outputs: int, dtype: str, groups: int = 1) -> Operator:
    """`x` (..., inputs) times a weight (outputs, inputs); each of `groups` experts has its rows."""
    weight = (outputs, x[-1]) if groups == 1 else (groups, outputs, x[-1])
    flops = 2 * math.prod(x) * outputs
    return product(name, x, weight, (*x[:-1], outputs), flops, dtype)


@lru_cache(_KINDS)
def input_gradient(of: Operator) -> Operator:
    """The gradient of a linear operator's input: of the output's gradient and the weight."""
    (x, weight), (y,) = of.inputs, of.outputs
    return product(f"{of.name}.input_gradient", y, weight, x, of.flops, of.dtype)


@lru_cache(_KINDS)
def weight_gradient(of: Operator) -> Operator:
    """The gradient of a linear operator's weight: of its input and the output's gradient."""
    (x, weight), (y,) = of.inputs, of.outputs
    return product(f"{of.name}.weight_gradient", y, x, weight, of.flops, of.dtype)


def pointwise(
    name: str, op_type: str, inputs: tuple[Shape, ...], out: Shape, dtype: str, each: int = 1
) -> Operator:
    """An operator that does `each` operations for every element of its largest input."""
    work = each * max(map(math.prod, inputs))
    return Operator(name, op_type, inputs, (out,), pointwise=work, dtype=dtype)


def gradient(of: Operator) -> Operator:
    """The backward pass of an operator without a product: twice the work, on the same elements."""
    (first, *_), (out,) = of.inputs, of.outputs
    return Operator(
        f"{of.name}.gradient", of.op_type, (out, *of.inputs), (first,),
        pointwise=2 * of.pointwise, dtype=of.dtype,
    )  # fmt: skip


@dataclass(frozen=True)
class Heads:
    """What attention works on: heads of queries, heads of keys and values, and their widths."""

    batch: int
    queries: int
    keys: int
    query_heads: int
    kv_heads: int
    score_width: int
    value_width: int


def attention(name: str, heads: Heads, dtype: str, *, causal: bool) -> Operator:
    """Scores, softmax and context in one kernel.

    FLOP: 2·b·s·n·heads·width for the scores and as many for the context; half of it where the
    kernel skips what a causal mask hides (`causal`).
    """
    pairs = heads.batch * heads.queries * heads.keys * heads.query_heads
    flops = 2 * pairs * (heads.score_width + heads.value_width)
    q = (heads.batch, heads.query_heads, heads.queries, heads.score_width)
    k = (heads.batch, heads.kv_heads, heads.keys, heads.score_width)
    v = (heads.batch, heads.kv_heads, heads.keys, heads.value_width)
    out = (heads.batch, heads.query_heads, heads.queries, heads.value_width)
    part = 2 if causal else 1
    return Operator(
        name, "attention", (q, k, v), (out,),
        flops=flops // part, pointwise=5 * pairs // part, dtype=dtype,
    )  # fmt: skip


def attention_gradient(of: Operator) -> Operator:
    """Gradients of queries, keys and values: two products for each one of the forward pass."""
    q, k, v = of.inputs
    (out,) = of.outputs
    return Operator(
        f"{of.name}.gradient", of.op_type, (out, q, k, v, out), (q, k, v),
        flops=2 * of.flops, pointwise=2 * of.pointwise, dtype=of.dtype,
    )  # fmt: skip


def lookup(name: str, tokens: Shape, table: Shape, dtype: str) -> Operator:
    """Rows of a table for tokens: it moves the rows, not the table."""
    out = (*tokens, table[-1])
    moved = 2 * math.prod(out) * DTYPES[dtype][0] + math.prod(tokens) * DTYPES["int64"][0]
    return Operator(name, "embedding", (tokens, table), (out,),
                    pointwise=math.prod(out), dtype=dtype, moved=moved)  # fmt: skip


def lookup_gradient(of: Operator) -> Operator:
    """Add the gradients of rows to the table's gradient."""
    (tokens, table), (out,) = of.inputs, of.outputs
    return Operator(f"{of.name}.weight_gradient", of.op_type, (out, tokens), (table,),
                    pointwise=of.pointwise, dtype=of.dtype, moved=of.moved)  # fmt: skip


def adam(elements: int, gradient_element: int, element: int) -> Operator:
    """One step of Adam on a rank's share: master copy and two moments in fp32.

    It reads gradients and the three states, and writes the states and the parameters.
    """
    moved = elements * (gradient_element + 2 * 12 + element)
    return Operator("optimizer.adam", "optimizer", ((elements,),), ((elements,),),
                    pointwise=12 * elements, moved=moved)  # fmt: skip
