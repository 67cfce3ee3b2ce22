"""Small numbers in place of large ones: what is equal has the same number, order is kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def codes(*columns: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """A number for each row of one or more columns: the rank of that row among distinct rows."""
    result = _ranks(columns[0])
    for column in columns[1:]:
        ranks = _ranks(column)
        result = _ranks(result * (int(ranks.max(initial=-1)) + 1) + ranks)
    return result


def _ranks(values: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    # Asked for places, too, NumPy sorts in a way that makes use of order that is there already.
    _, _, ranks = np.unique(values, return_index=True, return_inverse=True)
    return ranks.ravel()
