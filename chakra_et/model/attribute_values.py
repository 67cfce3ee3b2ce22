"""What attributes are: their keys, their kinds, and which values fit these."""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.definitions import Kind

AttributeValue = Any
"""int, float, bool, str, bytes, a tuple of one of these, or None for an attribute without value."""

INTEGER_KINDS: Final = frozenset(kind for kind in Kind if kind.name.endswith(("32", "64")))
_UNSIGNED: Final = frozenset(k for k in INTEGER_KINDS if k.name.startswith(("UINT", "FIXED")))


def _range(kind: Kind) -> tuple[int, int]:
    bits = 32 if kind.name.endswith("32") else 64
    return (0, 2**bits - 1) if kind in _UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


INTEGER_RANGES: Final = {kind: _range(kind) for kind in INTEGER_KINDS}
"""Least and greatest value of each kind of integer."""

_TYPES: Final[dict[Kind, tuple[type, ...]]] = {
    **dict.fromkeys(INTEGER_KINDS, (int, np.integer)),
    Kind.DOUBLE: (float, int, np.floating),
    Kind.FLOAT: (float, int, np.floating),
    Kind.BOOL: (bool, int, np.bool_),
    Kind.STRING: (str,),
    Kind.BYTES: (bytes,),
}


def array_type(kind: Kind | None) -> npt.DTypeLike | None:
    """The NumPy type that holds values of `kind`, or None where a Python list holds them."""
    if kind in INTEGER_KINDS:
        return np.uint64 if kind in _UNSIGNED else np.int64
    if kind is Kind.BOOL:
        return np.bool_
    if kind is Kind.DOUBLE:
        return np.float64
    if kind is Kind.FLOAT:
        return np.float32
    return None


class AttributeKey(msgspec.Struct, frozen=True):
    """What tells one attribute column from another.

    `kind` is None for an attribute that carries no value. `occurrence` numbers repetitions of what
    is otherwise the same key within a node; `doc` is the attribute's doc string; `extra` holds the
    bytes of protobuf fields that this version does not know.
    """

    name: str
    kind: Kind | None
    occurrence: int = 0
    doc: str = ""
    extra: bytes = b""


def stored(key: AttributeKey, values: Any) -> Any:
    """The values as an array, or as a list where no array holds such values."""
    dtype = array_type(key.kind)
    if dtype is None:
        return list(values)
    try:
        array = np.asarray(values, dtype)
    except OverflowError as error:
        raise ValueError(f"attribute {key.name!r}: {error}") from None
    if key.kind in INTEGER_RANGES and isinstance(values, np.ndarray):
        changed = np.flatnonzero(array != values)
        if len(changed):
            raise ValueError(f"attribute {key.name!r}: {values[changed[0]]} is no {key.kind.name}")
    return array


def check_values(key: AttributeKey, values: Any) -> None:
    """Raise ValueError where `values` of the attribute `key` do not fit its kind."""
    kind = key.kind
    if kind is None or len(values) == 0 or callable(values):
        return
    scalar = kind if kind in _TYPES else Kind(kind - 1)
    if isinstance(values, np.ndarray):
        # Any array of the right type is right, but for the 32 bits that some kinds have.
        items = [values.min().item(), values.max().item()] if kind in INTEGER_RANGES else []
    else:
        items = values if scalar is kind else [item for value in values for item in value]
    if not all(issubclass(found, _TYPES[scalar]) for found in set(map(type, items))):
        raise ValueError(f"attribute {key.name!r}: not every value is a {scalar.name.lower()}")
    if scalar in INTEGER_RANGES and len(items):
        low, high = INTEGER_RANGES[scalar]
        if min(items) < low or max(items) > high:
            raise ValueError(f"attribute {key.name!r}: a value outside {scalar.name.lower()}")


def same_value(a: AttributeValue, b: AttributeValue) -> bool:
    """Equality of two attribute values in which NaN equals NaN, and 0.0 is not -0.0."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(same_value(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return a != a if b != b else a == b and math.copysign(1, a) == math.copysign(1, b)
    return bool(a == b)
