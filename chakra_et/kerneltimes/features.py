"""What the time of a call depends on: its key, and numbers from the shapes that it works on."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.build import DTYPES
from chakra_et.io.json_text import from_json
from chakra_et.tables.work import product_of, work_of

FEATURES: Final = ("batch", "m", "n", "k", "flops", "bytes", "ranks")
"""`batch` products of (m, k) by (k, n); FLOP of one call; bytes of all its tensors, or of a rank's
input to a collective; ranks of a collective's group."""
BATCH, M, N, K, FLOPS, BYTES, RANKS = range(len(FEATURES))

Features: TypeAlias = npt.NDArray[np.float64]
"""float64[calls, len(FEATURES)]; NaN for what is not known or does not apply."""

HOST: Final = "host"
"""The device of operators that ran on the processor."""
LINKS: Final = "links"
"""The device of transfers between ranks."""

GENERATED_PRODUCT: Final = "matmul"
"""How generators call products."""

_SHORT: Final = {told: name for name, (_, told) in DTYPES.items()}
_ELEMENT: Final = re.compile(r"Tensor\(([^()]*)\)")


_REMEMBERED: Final = 1 << 16
"""So many distinct calls are looked at once: all ranks of a run make the same ones."""


class Key(NamedTuple):
    """Calls whose times depend on the same few numbers."""

    operator: str
    dtype: str
    device: str


class Texts(NamedTuple):
    """Shapes and types of the inputs and outputs of a call, as JSON lists, as nodes have them."""

    input_shapes: bytes
    input_types: bytes
    output_shapes: bytes = b""
    output_types: bytes = b""


def no_features(count: int) -> Features:
    """The features of calls of which nothing is known."""
    return np.full((count, len(FEATURES)), np.nan)


@lru_cache(_REMEMBERED)
def features_of_call(operator: str, texts: Texts) -> Features:
    """The features of one call of an operator: a row of `Features`, which nobody changes."""
    row: Features = no_features(1)[0]
    product = product_of(operator, texts.input_shapes)
    if product is not None:
        row[[BATCH, M, N, K]] = product
    work = work_of(operator, *texts)
    row[FLOPS] = np.nan if work.flops is None else work.flops
    row[BYTES] = np.nan if work.bytes is None else work.bytes
    row.flags.writeable = False
    return row


def features_of_generated(operator: str, flops: int, moved_bytes: int, output: bytes) -> Features:
    """The features of an operator that a generator told of: `num_ops`, `tensor_size`, negative for
    none, and the shapes of its outputs. The lengths of a product follow from its result and FLOP.
    """
    row: Features = no_features(1)[0]
    row[FLOPS] = flops if flops >= 0 else np.nan
    row[BYTES] = moved_bytes if moved_bytes >= 0 else np.nan
    try:
        (shape,) = from_json(output, type=list[list[int]])
    except (msgspec.DecodeError, ValueError):
        return row
    size = math.prod(shape)
    if operator == GENERATED_PRODUCT and shape and size > 0 and flops > 0:
        row[[BATCH, M, N, K]] = 1, size // shape[-1], shape[-1], flops / (2 * size)
    return row


@lru_cache(_REMEMBERED)
def dtype_of(input_types: bytes) -> str:
    """The type of the first tensor among inputs, as `fp32`; its own name if it has no short one."""
    try:
        types = from_json(input_types, type=list[str])
    except msgspec.DecodeError:
        return ""
    for told in types:
        if found := _ELEMENT.search(told):
            return _SHORT.get(found[1], found[1])
    return ""
