"""Recorded times of calls, summed up: what a table of kernel times is fitted to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from chakra_et.columns import Rows
from chakra_et.kerneltimes.calls import Calls, calls_of
from chakra_et.kerneltimes.features import BYTES, LINKS, RANKS, Features, Key, no_features
from chakra_et.model import Trace, TraceSet
from chakra_et.tables.collectives import call_table
from chakra_et.tables.grouping import Keys, codes
from chakra_et.tables.table import Column
from chakra_et.times import have_times


@dataclass(frozen=True)
class Samples:
    """Recorded calls, those alike in one row: key, features, the model that they were recorded in.

    `count` is how many there were; `median_ns` and `total_ns` are of their times.
    """

    keys: list[Key]
    features: Features
    models: list[str]
    count: Rows
    median_ns: Rows
    total_ns: Rows

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, places: Rows) -> Samples:
        """Some of the rows."""
        rows = places.tolist()
        return Samples(
            [self.keys[row] for row in rows],
            self.features[places],
            [self.models[row] for row in rows],
            self.count[places],
            self.median_ns[places],
            self.total_ns[places],
        )

    @classmethod
    def joined(cls, several: Sequence[Samples]) -> Samples:
        """The rows of all, in the order of keys, features and models."""
        made = cls(
            [key for one in several for key in one.keys],
            np.concatenate([no_features(0), *(one.features for one in several)]),
            [model for one in several for model in one.models],
            *(
                np.concatenate([np.zeros(0, np.int64), *(getattr(one, name) for one in several)])
                for name in ("count", "median_ns", "total_ns")
            ),
        )
        shapes = np.nan_to_num(made.features, nan=-1).tolist()
        order = sorted(range(len(made)), key=lambda i: (made.keys[i], shapes[i], made.models[i]))
        return made.take(np.array(order, np.int64))


def samples_of(
    traces: Mapping[int, Trace], model: str, known: Mapping[int, Calls] | None = None
) -> Samples:
    """The calls of all ranks of a run of one model that have a time.

    A transfer takes the shortest duration of its members, and counts where all were recorded.
    `known` has the calls of ranks where these are known already.
    """
    keys: list[Key] = []
    features, times = [no_features(0)], [np.zeros(0, np.int64)]
    for rank, trace in traces.items():
        calls = known[rank] if known is not None else calls_of(trace)
        computes = np.array([key.device != LINKS for key in calls.keys], np.bool_)
        computes &= np.isin(np.arange(len(computes)), calls.call_of[have_times(trace)])
        keys += [calls.keys[row] for row in np.flatnonzero(computes).tolist()]
        features.append(calls.features[computes])
        times.append(calls.took_ns[computes])
    moved = _transfers(traces)
    return _summed(
        keys + moved[0],
        np.concatenate([*features, moved[1]]),
        np.concatenate([*times, moved[2]]),
        model,
    )


def _summed(keys: list[Key], features: Features, times: Rows, model: str) -> Samples:
    if not len(keys):
        return Samples([], no_features(0), [], times, times, times)
    code, _ = codes(keys)
    alike = Keys.of(code, *np.nan_to_num(features, nan=-1).T)
    spread = alike.spread(times, (50,))
    first = alike.first
    return Samples.joined([
        Samples([keys[row] for row in first.tolist()], features[first], [model] * len(first),
                spread["count"], spread["p50_ns"], spread["total_ns"]),
    ])  # fmt: skip


def _transfers(traces: Mapping[int, Trace]) -> tuple[list[Key], Features, Rows]:
    """Each transfer once, of those whose size and time are known."""
    table = call_table(traces if isinstance(traces, TraceSet) else TraceSet(traces))
    took = table["transfer_ns"]
    sizes = _own_bytes(table["type"], table["message_bytes"], table["size"])
    # Of a member alone, nobody knows how long it waited for the others.
    whole = (table["size"] > 1) & (table["members"] == table["size"])
    rows = np.flatnonzero(whole & ~np.ma.getmaskarray(took) & np.isfinite(sizes))
    features = no_features(len(rows))
    features[:, BYTES] = sizes[rows]
    features[:, RANKS] = table["size"][rows]
    kinds = [kind if kind.isupper() else "COLLECTIVE" for kind in table["type"][rows].tolist()]
    return [Key(k, "", LINKS) for k in kinds], features, np.asarray(took[rows], np.int64)


def _own_bytes(kinds: Column, message: Column, size: Column) -> Features:
    """What a rank brings along, of the size of the whole message."""
    parts = np.isin(kinds.astype(str), ("ALL_GATHER", "GATHER"))
    known = np.ma.filled(message.astype(np.float64), np.nan)
    return np.asarray(np.where(parts, known / np.maximum(size, 1), known))
