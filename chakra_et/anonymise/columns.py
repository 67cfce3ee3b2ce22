"""Which values of an attribute a rule can treat: those of the kind that the schema names."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from chakra_et.definitions import ATTRIBUTES
from chakra_et.model import AttributeColumn, AttributeTable
from chakra_et.model.attribute_values import INTEGER_KINDS, INTEGER_RANGES

_GREATEST: Final = 1 << 62
"""Numbers from here on would not survive a change of a few percent."""


def sound_values(column: AttributeColumn) -> AttributeColumn | None:
    """The values that a rule can treat; None where the schema accepts no such kind.

    A text where the schema has a number could say anything, so it may not stay.
    """
    kind = column.key.kind
    if kind not in ATTRIBUTES[column.key.name].accepts:
        return None
    if kind not in INTEGER_KINDS:
        return column
    inside = (column.values < _GREATEST) & (column.values > -_GREATEST)
    return column.part(np.flatnonzero(inside))


def add_fitting(table: AttributeTable, column: AttributeColumn, values: Any) -> None:
    """Add treated values, but for those that are None or that the column's kind cannot hold."""
    kind, rows = column.key.kind, column.rows
    if kind in INTEGER_RANGES and kind is not None:
        low, high = INTEGER_RANGES[kind]
        fits = [low <= value <= high for value in np.asarray(values).tolist()]
    else:
        fits = [value is not None for value in values]
    kept = np.flatnonzero(fits)
    if kind is not None and len(kept):
        table.add(column.key.name, kind, [values[i] for i in kept.tolist()], rows[kept])
