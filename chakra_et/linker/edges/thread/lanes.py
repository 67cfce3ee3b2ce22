"""Times searched among those of their own threads, for all threads at once."""

from __future__ import annotations

from typing import Literal

import numpy as np

from chakra_et.codes import row_keys
from chakra_et.columns import Rows


def search_in_lanes(
    lanes: Rows, values: Rows, lane: Rows, wanted: Rows, side: Literal["left", "right"] = "right"
) -> Rows:
    """How many (lane, value) pairs come before each wanted pair; on the right side, equal ones do.

    The pairs are sorted by lane, then value.
    """
    pair, count = row_keys(np.append(lanes, lane), np.append(values, wanted)), len(values)
    return np.searchsorted(pair[:count], pair[count:], side)
