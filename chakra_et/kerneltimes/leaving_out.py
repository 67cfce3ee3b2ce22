"""How far a table can be trusted: each model foretold by a table of all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.kerneltimes.kernel_times import KernelTimes, Provenance
from chakra_et.kerneltimes.samples import Samples
from chakra_et.tables.grouping import Keys, codes
from chakra_et.tables.table import Column, Table, texts

_PARTS: Final = 10
"""A table of one model is foretold in so many parts, each by the others."""
ALL: Final = "(all)"


def errors_table(samples: Samples) -> Table:
    """The error of times by operator and device, when what is asked for was left out.

    With several models, each is foretold by the others. With one, that cannot be told; then each
    tenth of its shapes is, which says nothing of other models. Errors are of one call, and count by
    the time that calls took: half of it lies in calls whose error is at most `median_error_share`.
    `total_error_share` is that of the sum over all calls. Calls that are `unknown`, for which
    nothing tells a time, have no error. The last columns have the number of calls by provenance.
    """
    foretold, source = np.full(len(samples), np.nan), np.zeros(len(samples), np.int64)
    for left in _parts(samples):
        kept = np.setdiff1d(np.arange(len(samples)), left)
        asked = samples.take(left)
        times, provenance = KernelTimes(samples.take(kept)).times_ns(asked.keys, asked.features)
        foretold[left], source[left] = times, provenance
    where, kinds = codes([(key.operator, key.device) for key in samples.keys])
    everyone = np.zeros(len(samples), np.int64)
    rows = [_row(samples, foretold, source, keys) for keys in (Keys.of(everyone), Keys.of(where))]
    names = [ALL] * min(len(samples), 1) + [operator for operator, _ in kinds]
    devices = [""] * min(len(samples), 1) + [device for _, device in kinds]
    columns = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    table = {"operator": texts(names), "device": texts(devices), **columns}
    return Table("errors", table, f"{_models(samples)}; errors of one call, by time").by("total_ns")


def _models(samples: Samples) -> str:
    several = sorted(set(samples.models))
    if len(several) > 1:
        return f"each of {len(several)} models foretold by the others"
    return (
        "one model: the error on another one cannot be told; each tenth of its shapes foretold "
        "by the rest"
    )


def _parts(samples: Samples) -> Iterator[Rows]:
    """The rows that are left out together."""
    model, names = codes(samples.models)
    part = model if len(names) > 1 else np.arange(len(samples)) % _PARTS
    for number in range(int(part.max(initial=-1)) + 1):
        left = np.flatnonzero(part == number)
        if len(left):
            yield left


def _row(samples: Samples, foretold: Column, source: Column, keys: Keys) -> dict[str, Column]:
    """Counts and errors of each key."""
    count, real = samples.count, np.maximum(samples.median_ns, 1)
    told, took = np.isfinite(foretold), np.maximum(samples.total_ns, 1)
    error = np.where(told, np.abs(np.nan_to_num(foretold) / real - 1), np.nan)
    found = {
        "calls": keys.sum(count),
        "shapes": keys.count(),
        "total_ns": keys.sum(samples.total_ns),
        "median_error_share": _percentile(error, took, keys, 0.5),
        "p90_error_share": _percentile(error, took, keys, 0.9),
    }
    sums = keys.sum(np.where(told, real * count, 0)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        total = keys.sum(np.where(told, np.nan_to_num(foretold) * count, 0.0)) / sums - 1
    found["total_error_share"] = np.where(sums > 0, total, np.nan)
    for provenance in Provenance:
        found[provenance.label] = keys.sum(np.where(source == provenance, count, 0))
    return found


def _percentile(values: Column, weight: Rows, keys: Keys, share: float) -> Column:
    """A percentile of the values of each key by weight; NaN where none is."""
    found = np.full(len(keys), np.nan)
    for key in range(len(keys)):
        rows = np.flatnonzero((keys.code == key) & np.isfinite(values))
        order = rows[np.argsort(values[rows], kind="stable")]
        if len(order):
            passed = np.cumsum(weight[order])
            found[key] = values[order[np.searchsorted(passed, share * passed[-1])]]
    return found
