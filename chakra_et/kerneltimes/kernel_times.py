"""Times of kernels and operators: recorded ones, between recorded ones, and what rates foretell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.kerneltimes.between_points import Points
from chakra_et.kerneltimes.features import (
    BATCH,
    BYTES,
    FLOPS,
    LINKS,
    RANKS,
    Features,
    K,
    Key,
    M,
    N,
    no_features,
)
from chakra_et.kerneltimes.rates import Rates, rates_of, terms_of
from chakra_et.kerneltimes.samples import Samples
from chakra_et.tables.grouping import Keys, codes

Times = npt.NDArray[np.float64]


class Provenance(IntEnum):
    """Where a time comes from; `label` is the word for it.

    RECORDED: the median of calls with this key and these very features. INTERPOLATED: between
    calls of this key. EXTRAPOLATED: the nearest call of this key, times what rates of the key say
    of the difference. MODEL: this key was never recorded. A product takes what the product that was
    recorded most takes for these lengths, all else what rates of all operators of this type and
    device say. UNKNOWN: nothing tells; the time is NaN.
    """

    RECORDED = 0
    INTERPOLATED = 1
    EXTRAPOLATED = 2
    MODEL = 3
    UNKNOWN = 4

    @property
    def label(self) -> str:
        """The word for people and files."""
        return self.name.lower()


class KernelTimes:
    """Asked for the times of calls by what they work on; made of recorded calls.

    >>> from chakra_et.kerneltimes import FEATURES, Key, KernelTimes, Samples
    >>> import numpy as np
    >>> def product(n): return [1, n, n, n, 2 * n**3, 12 * n**2, np.nan]
    >>> key = Key("aten::mm", "fp32", "host")
    >>> ns = np.array([1_000, 64_000])
    >>> table = KernelTimes(Samples([key] * 2, np.array([product(64), product(256)]), ["a", "a"],
    ...                             np.array([1, 1]), ns, ns))
    >>> times, provenance = table.times_ns([key], np.array([product(128)]))
    >>> round(times[0]), Provenance(provenance[0]).label
    (8000, 'interpolated')
    """

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self._known: dict[Key, _OfKey] = {}
        self._told: dict[tuple[Key, bytes], tuple[float, Provenance]] = {}

    @classmethod
    def load(cls, path: str | Path) -> KernelTimes:
        """The table in a file that `chakra fit` wrote. Raises FormatError for any other."""
        from chakra_et.kerneltimes.files import read_samples

        return cls(read_samples(path))

    def times_ns(
        self, keys: Sequence[Key], features: Features
    ) -> tuple[Times, npt.NDArray[np.uint8]]:
        """The time of each call in ns, NaN where nothing tells, and its `Provenance`.

        `keys` has one key for each row of `features`, whose columns are `FEATURES`.
        """
        if not len(keys):
            return np.zeros(0), np.zeros(0, np.uint8)
        number, distinct = codes(keys)
        alike = Keys.of(number, *np.nan_to_num(features, nan=-1).T)
        found = [
            self._time(distinct[int(number[row])], features[row]) for row in alike.first.tolist()
        ]
        times = np.array([ns for ns, _ in found])
        source = np.array([source for _, source in found], np.uint8)
        return times[alike.code], source[alike.code]

    def _time(self, key: Key, row: Features) -> tuple[float, Provenance]:
        """The time of a call, kept: the ranks of a run ask for the same ones."""
        asked = (key, row.tobytes())
        if asked not in self._told:
            self._told[asked] = self._found(key, row)
        return self._told[asked]

    def _found(self, key: Key, row: Features) -> tuple[float, Provenance]:
        if key in self._places:
            return self._of_key(key).time(row)
        product = self._products.get(_pool(key))
        if product is not None and np.isfinite(row[[BATCH, M, N, K]]).all():
            return self._of_key(product).time(row)[0], Provenance.MODEL
        rates = self._pools.get(_pool(key))
        terms = terms_of([key], row[None])
        if rates is None or not (terms[0, 1:] > 0).any():
            return np.nan, Provenance.UNKNOWN
        return float(rates.times_ns(terms)[0]), Provenance.MODEL

    @cached_property
    def _places(self) -> dict[Key, list[int]]:
        places: dict[Key, list[int]] = {}
        for row, key in enumerate(self.samples.keys):
            places.setdefault(key, []).append(row)
        return places

    @cached_property
    def _products(self) -> dict[tuple[str, str], Key]:
        """Of each type and device, the product of matrices that was recorded most."""
        lengths = np.asarray(np.isfinite(self.samples.features[:, [BATCH, M, N, K]]).all(axis=1))
        calls: dict[Key, int] = {}
        for key, rows in self._places.items():
            if lengths[rows].all():
                calls[key] = int(self.samples.count[rows].sum())
        return {_pool(key): key for key in sorted(calls, key=lambda key: (calls[key], key))}

    @cached_property
    def _pools(self) -> dict[tuple[str, str], Rates]:
        """Rates of all calls of one type on one device."""
        pools: dict[tuple[str, str], list[int]] = {}
        for key, rows in self._places.items():
            pools.setdefault(_pool(key), []).extend(rows)
        return {pool: rates_of(*self._terms(np.array(rows))) for pool, rows in pools.items()}

    def _terms(self, rows: Rows) -> tuple[Times, Times, Times]:
        """What rates are fitted to: terms, time of a call, and of all calls."""
        samples = self.samples.take(rows)
        each, total = (np.maximum(ns, 1).astype(np.float64)
                       for ns in (samples.median_ns, samples.total_ns))  # fmt: skip
        return terms_of(samples.keys, samples.features), each, total

    def _of_key(self, key: Key) -> _OfKey:
        if key not in self._known:
            rows = np.array(self._places[key])
            rates = partial(self._rates, key, rows)
            self._known[key] = _OfKey.of(key, self.samples.take(rows), rates)
        return self._known[key]

    def _rates(self, key: Key, rows: Rows) -> Rates:
        """The rates of one key, from those of all of its type and device on."""
        return self._pools[_pool(key)].fitted(*self._terms(rows))


@dataclass(frozen=True)
class _OfKey:
    """The recorded calls of one key: distinct features, their times, and what is between them.

    `fit` finds the rates, which are asked for beyond the recorded calls alone.
    """

    key: Key
    features: Features
    times_ns: Times
    fit: Callable[[], Rates]
    points: Points
    first_of: Rows

    @classmethod
    def of(cls, key: Key, samples: Samples, fit: Callable[[], Rates]) -> _OfKey:
        alike = Keys.of(*np.nan_to_num(samples.features, nan=-1).T)
        weight = samples.count.astype(np.float64)
        # Of several models with the same features, the mean over calls.
        took = alike.sum(weight * samples.median_ns) / alike.sum(weight)
        features = samples.features[alike.first]
        places = _coordinates(features)
        points = Keys.of(*places.T)
        logs = points.sum(np.log(np.maximum(took, 1))) / points.count()
        return cls(key, features, took, fit, Points(places[points.first], logs), points.first)

    @cached_property
    def rates(self) -> Rates:
        """What calls of this key cost."""
        return self.fit()

    def time(self, row: Features) -> tuple[float, Provenance]:
        """The time of a call with these features."""
        same = (np.nan_to_num(self.features, nan=-1) == np.nan_to_num(row, nan=-1)).all(1)
        if same.any():
            return float(self.times_ns[np.argmax(same)]), Provenance.RECORDED
        place = _coordinates(row[None])[0]
        between = self.points.at(place)
        if between is not None:
            return float(np.exp(between)), Provenance.INTERPOLATED
        nearest = int(self.first_of[self.points.nearest(place)])
        both = terms_of([self.key] * 2, np.array([row, self.features[nearest]]))
        here, there = self.rates.times_ns(both).tolist()
        return float(self.times_ns[nearest]) * here / there, Provenance.EXTRAPOLATED


def _coordinates(features: Features) -> Features:
    """What times are interpolated over, on logarithmic scales; 0 for what does not apply.

    The lengths of a product say all of it. Else FLOP, bytes and ranks.
    """
    lengths, sums = features[:, [BATCH, M, N, K]], features[:, [FLOPS, BYTES, RANKS]]
    product: Mask = np.asarray(np.isfinite(lengths).all(axis=1))
    told = np.where(product[:, None], np.column_stack((lengths, no_features(len(features))[:, :3])),
                    np.column_stack((no_features(len(features))[:, :4], sums)))  # fmt: skip
    return np.asarray(np.log(np.maximum(np.nan_to_num(told, nan=1.0), 1.0)))


def _pool(key: Key) -> tuple[str, str]:
    """What shares rates: transfers, else all of one type of elements on one device."""
    return (key.device, "" if key.device == LINKS else key.dtype)
