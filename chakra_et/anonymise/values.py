"""Numbers and shapes, changed within stated bounds."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

import numpy as np

from chakra_et.anonymise.policy import Policy, Shapes
from chakra_et.columns import Rows

TYPE: Final = re.compile(
    r"(Tensor\((float|double|int|long int|short int|signed char|unsigned char|bool|"
    r"c10::(Half|BFloat16|Float8_e4m3fn|Float8_e5m2)|c10::complex<(float|double)>)\)|"
    r"Int|Double|Bool|None|Scalar|String|Device|Generator|Stream)"
)
"""Types of arguments that may stay; every other is `Other`."""


def sizes(values: Rows, error: float) -> Rows:
    """Sizes on a grid whose steps are as far apart as the error allows; small ones stay exact."""
    if error == 0:
        return values
    ratio = math.log1p(2 * error)
    positive = np.maximum(values, 1).astype(np.float64)
    rounded = np.rint(np.exp(np.rint(np.log(positive) / ratio) * ratio)).astype(np.int64)
    near = np.abs(rounded - values) <= error * values
    return np.where((values > 0) & near, rounded, values)


def on_grid(values_ns: Rows, grid_ns: int) -> Rows:
    """Times rounded to multiples of a grid; what is not 0 stays at least one step."""
    if grid_ns == 1:
        return values_ns
    rounded = (values_ns + grid_ns // 2) // grid_ns * grid_ns
    return np.where(values_ns > 0, np.maximum(rounded, grid_ns), rounded)


def shapes_text(text: bytes, policy: Policy) -> bytes:
    """A list of shapes with what may stay: lists of whole numbers, and nothing else."""
    if policy.shapes is Shapes.DROP:
        return b""
    return _encoded(_lengths(_decoded(text), policy.shapes is Shapes.ROUND))


def types_text(text: bytes, policy: Policy) -> bytes:
    """A list of types with those that are known; every other becomes `Other`."""
    if not policy.types:
        return b""
    return _encoded([_type(item) for item in _listed(_decoded(text))])


def _type(item: Any) -> str:
    return item if isinstance(item, str) and TYPE.fullmatch(item) else "Other"


def _lengths(item: Any, rounds: bool) -> Any:
    if isinstance(item, list):
        return [_lengths(part, rounds) for part in item]
    if isinstance(item, bool) or not isinstance(item, int):
        return []
    return 1 << max(item - 1, 0).bit_length() if rounds and item > 0 else item


def _listed(item: Any) -> list[Any]:
    return item if isinstance(item, list) else []


def _decoded(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return []


def _encoded(item: Any) -> bytes:
    return json.dumps(_listed(item), separators=(",", ":")).encode()
