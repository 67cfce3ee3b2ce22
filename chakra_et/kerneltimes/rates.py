"""A roofline that is fitted: what a call costs at least, and for each FLOP and byte.

Transfers cost for each step of a ring instead of for FLOP, and for the bytes over a rank's link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.definitions import CollectiveType
from chakra_et.estimate.relative import least_relative
from chakra_et.kerneltimes.features import BYTES, FLOPS, LINKS, RANKS, Features, Key
from chakra_et.network.algorithms import work_of

Reals = npt.NDArray[np.float64]

_ROUNDS: Final = 12
_STEP: Final = 4.0
"""A round changes no cost by more than this factor: logarithms are straight for short steps."""


@dataclass(frozen=True)
class Rates:
    """What a call costs in ns: for itself, for each FLOP or step, for each byte."""

    costs: tuple[float, float, float]

    def times_ns(self, terms: Reals) -> Reals:
        """The times of calls of these terms."""
        return np.asarray(terms @ np.array(self.costs))

    def fitted(self, terms: Reals, times_ns: Reals, total_ns: Reals) -> Rates:
        """The rates that come closest to recorded times on a logarithmic scale; from here on.

        Calls count by the time that they took in all. Of relative errors, the smallest would be
        those of times that are foretold too short: they are never larger than 1.
        """
        costs, importance = np.array(self.costs), total_ns / total_ns.mean()
        for _ in range(_ROUNDS):
            parts = terms * costs
            foretold = parts.sum(1)
            base = 1 + np.log(foretold / times_ns)
            scale = least_relative(
                base, parts / foretold[:, None], np.ones(3), np.full(3, 1 / _STEP), importance
            )
            costs = costs * np.minimum(scale, _STEP)
        call, work, byte = costs.tolist()
        return Rates((call, work, byte))


def terms_of(keys: Sequence[Key], features: Features) -> Reals:
    """What calls cost for, float64[calls, 3]: one call, FLOP or steps, bytes; 0 for unknown."""
    terms = np.column_stack((np.ones(len(keys)), np.nan_to_num(features[:, [FLOPS, BYTES]])))
    for row in [row for row, key in enumerate(keys) if key.device == LINKS]:
        name, ranks = keys[row].operator, features[row, RANKS]
        kind = CollectiveType[name] if name in CollectiveType.__members__ else None
        if ranks > 1:
            terms[row, 1:] = work_of("ring", kind, int(terms[row, 2]), int(ranks))
    return terms


def rates_of(terms: Reals, times_ns: Reals, total_ns: Reals) -> Rates:
    """The rates of recorded times, with nothing known before.

    A fit begins where each cost alone would explain a third of half of all time.
    """
    start = []
    for amount in terms.T:
        told = np.flatnonzero(amount > 0)
        each = times_ns[told] / amount[told]
        order = np.argsort(each, kind="stable")
        passed = np.cumsum(total_ns[told[order]])
        half = np.searchsorted(passed, passed[-1] / 2) if len(told) else 0
        start.append(float(each[order[half]]) / len(terms.T) if len(told) else 0.0)
    return Rates((start[0], start[1], start[2])).fitted(terms, times_ns, total_ns)
