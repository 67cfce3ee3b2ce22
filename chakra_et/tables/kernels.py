"""Device work by name: kernels, copies and memsets."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from chakra_et.model import Trace
from chakra_et.tables.grouping import Keys, codes
from chakra_et.tables.places import Places
from chakra_et.tables.table import Table, texts


def kernel_table(traces: Mapping[int, Trace]) -> Table:
    """Device work but communication, by name, with the operator that launches most of it."""
    names: list[str] = []
    kinds: list[str] = []
    operators: list[str] = []
    times = []
    for trace in traces.values():
        places = Places(trace)
        rows = np.flatnonzero(~places.on_host & ~places.communication & places.ran)
        by = places.nearest(places.operator)[rows]
        name = trace.nodes.name
        names += name[rows].tolist()
        kinds += places.kind[rows].tolist()
        operators += np.where(by >= 0, name[by], "").tolist() if len(rows) else []
        times.append(trace.nodes.duration_ns[rows])
    code, distinct = codes(list(zip(names, kinds, strict=True)))
    keys = Keys.of(code)
    ns = np.concatenate([*times, np.zeros(0, np.int64)])
    spread = keys.spread(ns)
    columns = {
        "name": texts([name for name, _ in distinct]),
        "kind": texts([kind for _, kind in distinct]),
        **spread,
        "time_share": spread["total_ns"] / max(int(ns.sum()), 1),
        "operator": texts(_most_frequent(code, operators, len(distinct))),
    }
    return Table("kernels", columns, "time_share is of all device time but communication").by(
        "total_ns"
    )


def _most_frequent(code: np.ndarray, items: list[str], count: int) -> list[str]:
    """For each key the item that occurs with it most; the first of equals."""
    number, distinct = codes(items)
    pairs = Keys.of(code, number)
    found = [""] * count
    best = [0] * count
    for first, seen in zip(pairs.first.tolist(), pairs.count().tolist(), strict=True):
        key = int(code[first])
        if seen > best[key]:
            found[key], best[key] = distinct[int(number[first])], seen
    return found
