"""How alike two sets are, each measure beside what it is between steps or ranks of the first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet
from chakra_et.simulation import AstraLog
from chakra_et.synth.chain import Sequences, likelihoods
from chakra_et.synth.units import Counts, Reals, Unit, has_steps, units_of
from chakra_et.tables.table import Table

WITHIN: Final = 2.0
"""A measure of at most so many times the spread counts as alike."""
_SHARE: Final = 0.01
_LOG: Final = 0.05
_BITS: Final = 0.05
_ORDER: Final = 5
_MOST_TRAINED: Final = 6
"""So many units of each set are used to train chains and to be foreseen by them."""


@dataclass(frozen=True)
class Measure:
    """One measure: how far the sets are apart, and how far units of the first are.

    Both are medians over pairs of units. `spread` is None where the first set has one unit alone.
    A spread below `resolution` counts as the resolution.
    """

    group: str
    name: str
    unit: str
    value: float
    spread: float | None
    resolution: float

    @property
    def ratio(self) -> float | None:
        """The value by the spread; None without a spread."""
        return None if self.spread is None else self.value / max(self.spread, self.resolution)

    @property
    def alike(self) -> bool | None:
        """Whether the value lies within twice the spread; None without a spread."""
        return None if self.ratio is None else self.ratio <= WITHIN


@dataclass
class SetComparison:
    """All measures, and what the units are."""

    by: str
    units: tuple[int, int]
    measures: list[Measure] = field(default_factory=list)

    @property
    def unlike(self) -> list[Measure]:
        """The measures that lie outside."""
        return [measure for measure in self.measures if measure.alike is False]

    def table(self) -> Table:
        """The measures as a table."""
        m = self.measures
        told: dict[str, Any] = {
            "group": np.array([x.group for x in m], object),
            "measure": np.array([x.name for x in m], object),
            "unit": np.array([x.unit for x in m], object),
            "value": np.array([x.value for x in m]),
            "spread": np.array([np.nan if x.spread is None else x.spread for x in m]),
            "resolution": np.array([x.resolution for x in m]),
            "ratio": np.array([np.nan if x.ratio is None else x.ratio for x in m]),
            "alike": np.array(
                ["" if x.alike is None else "yes" if x.alike else "no" for x in m], object
            ),
        }
        a, b = self.units
        return Table("measures", told, f"by {self.by}: {a} of A, {b} of B")


def compare_sets(
    a: TraceSet, b: TraceSet, logs: tuple[AstraLog, AstraLog] | None = None
) -> SetComparison:
    """Compare two sets; the spread is that between steps of ranks of `a`, or between its ranks.

    Steps are compared where annotations of both tell them, else whole ranks. Raises ChakraError
    where one has nothing to compare, and as a replay does.
    """
    by_step = has_steps(a) and has_steps(b)
    left, right = units_of(a, by_step), units_of(b, by_step)
    if not left or not right:
        raise ChakraError("no node does any work", remedy="Name traces with nodes.")
    by = "step of a rank" if by_step else "rank"
    found = SetComparison(by, (len(left), len(right)))
    found.measures += _counted(left, right)
    found.measures += _valued(left, right)
    found.measures.append(_foreseen(left, right))
    found.measures += _replayed(left, right)
    if logs is not None:
        found.measures.append(_cycles(*logs))
    order = ("types", "sizes", "durations", "sequences", "graph", "system")
    found.measures.sort(key=lambda m: order.index(m.group))
    return found


def _measure(
    group: str,
    name: str,
    unit: str,
    resolution: float,
    left: Sequence[Any],
    right: Sequence[Any],
    apart: Callable[[Any, Any], float],
) -> Measure:
    value = _median(apart(x, y) for x, y in product(left, right))
    spread = _median(apart(x, y) for x, y in combinations(left, 2)) if len(left) > 1 else None
    return Measure(group, name, unit, value, spread, resolution)


def _median(values: Iterable[float]) -> float:
    return float(np.median(list(values)))


# -------------------------------------------------------------------------------------------------
# Distances between distributions


def total_variation(x: Counts, y: Counts) -> float:
    """Half the sum of the differences of shares: 0 for equal ones, 1 for nothing in common."""
    of_x, of_y = sum(x.values()), sum(y.values())
    if not of_x or not of_y:
        return float(bool(of_x) != bool(of_y))
    keys = x.keys() | y.keys()
    # Of a set: the sum must not depend on the order.
    return math.fsum(abs(x[key] / of_x - y[key] / of_y) for key in keys) / 2


def wasserstein(x: Reals, y: Reals) -> float:
    """The mean way from one distribution to the other; both are sorted."""
    if len(x) == 0 or len(y) == 0:
        return 0.0 if len(x) == len(y) else float(np.mean(x if len(x) else y))
    every = np.sort(np.concatenate([x, y]))
    share_x = np.searchsorted(x, every[:-1], side="right") / len(x)
    share_y = np.searchsorted(y, every[:-1], side="right") / len(y)
    return float(np.sum(np.abs(share_x - share_y) * np.diff(every)))


_GROUP_OF: Final = {
    "node types": "types",
    "operator families": "types",
    "3-grams": "sequences",
    "fan-in": "graph",
    "critical path": "graph",
}


def _counted(left: list[Unit], right: list[Unit]) -> list[Measure]:
    return [
        _measure(
            group, name, "total variation", _SHARE,
            [u.counts[name] for u in left], [u.counts[name] for u in right], total_variation,
        )
        for name, group in _GROUP_OF.items()
    ]  # fmt: skip


def _valued(left: list[Unit], right: list[Unit]) -> list[Measure]:
    names = dict.fromkeys(name for u in (*left, *right) for name, v in u.values.items() if len(v))
    none = np.zeros(0)
    return [
        _measure(
            "durations" if "durations" in name else "graph" if "distances" in name else "sizes",
            name, "Wasserstein on logarithms", _LOG,
            [u.values.get(name, none) for u in left], [u.values.get(name, none) for u in right],
            wasserstein,
        )
        for name in names
    ]  # fmt: skip


def _replayed(left: list[Unit], right: list[Unit]) -> list[Measure]:
    def spans(units: list[Unit]) -> list[float]:
        return [float(np.log(max(u.figures["span"], 1.0))) for u in units]

    def exposed(units: list[Unit]) -> list[float]:
        return [u.figures["exposed"] for u in units]

    return [
        _measure("system", "replayed span", "logarithm", _LOG, spans(left), spans(right), _apart),
        _measure(
            "system", "exposed communication", "share of the span", _SHARE,
            exposed(left), exposed(right), _apart,
        ),
    ]  # fmt: skip


def _apart(x: float, y: float) -> float:
    return abs(x - y)


def _cycles(a: AstraLog, b: AstraLog) -> Measure:
    """Cycles until each rank finished; the spread is that between ranks."""
    left, right = ([float(np.log(max(ns, 1))) for ns in log.finish_ns.values()] for log in (a, b))
    return _measure("system", "simulated cycles", "logarithm", _LOG, left, right, _apart)


# -------------------------------------------------------------------------------------------------
# Sequences


def _foreseen(left: list[Unit], right: list[Unit]) -> Measure:
    """Bits for each node under chains that were trained on the first set without that unit."""
    left, right = left[:_MOST_TRAINED], right[:_MOST_TRAINED]
    sequences = _sequences([*left, *right])
    place = np.arange(len(sequences))
    trained = [
        (place < len(left)) & ((place != held) | (len(left) == 1)) for held in range(len(left))
    ]
    own, others = [], []
    for held, (test, bits) in enumerate(likelihoods(sequences, trained, _ORDER)):
        sums = _by_unit(sequences, test, bits[0, -1])
        others.append(sums[len(left) :] / np.maximum(sequences.lengths[len(left) :], 1))
        own.append(float(sums[held] / max(int(sequences.lengths[held]), 1)))
    foreign = [float(x) for x in np.mean(others, axis=0)]
    if len(left) == 1:
        return Measure("sequences", "held-out likelihood", "bits a node", _median(foreign), None,
                       _BITS)  # fmt: skip
    return _measure("sequences", "held-out likelihood", "bits a node", _BITS, own, foreign, _apart)


def _sequences(units: list[Unit]) -> Sequences:
    codes: dict[str, int] = {}
    tokens = [codes.setdefault(symbol, len(codes)) for u in units for symbol in u.symbols]
    first = np.append(0, np.cumsum([len(u.symbols) for u in units])).astype(np.int64)
    none: Rows = np.zeros(len(units), np.int64)
    return Sequences(np.array(tokens, np.int64), first, none, none, np.arange(len(units)))


def _by_unit(sequences: Sequences, test: Any, bits: Reals) -> Reals:
    of = np.repeat(np.arange(len(sequences)), sequences.lengths + 1)[test]
    return np.asarray(np.bincount(of, bits, minlength=len(sequences)), np.float64)
