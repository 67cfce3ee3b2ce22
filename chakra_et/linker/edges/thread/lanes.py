"""Times searched among those of their own threads, for all threads at once."""

from __future__ import annotations

from typing import Literal

import numpy as np

from chakra_et.codes import codes
from chakra_et.columns import Rows


def search_in_lanes(
    lanes: Rows, values: Rows, lane: Rows, wanted: Rows, side: Literal["left", "right"] = "right"
) -> Rows:
    """How many (lane, value) pairs come before each wanted pair; on the right side, equal ones do.

    The pairs are sorted by lane, then value.
    """
    rank = codes(np.concatenate((values, wanted)))
    width = int(rank.max()) + 1 if len(rank) else 1
    keys = lanes * width + rank[: len(values)]
    return np.searchsorted(keys, lane * width + rank[len(values) :], side)
