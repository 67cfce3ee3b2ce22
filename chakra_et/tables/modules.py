"""Parts of the workload: what ran within each annotation, or each phase and layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.model import Trace
from chakra_et.recording.libraries import STEP
from chakra_et.tables.grouping import Keys, codes
from chakra_et.tables.places import Places
from chakra_et.tables.table import Table, texts

OUTSIDE: Final = "(outside of all)"
NOTHING_TOLD: Final = (
    "Nothing tells parts of the workload apart: no annotations, phases or layers. Put "
    "torch.profiler.record_function(NAME) around each module's forward, and record again."
)


def module_table(traces: Mapping[int, Trace]) -> Table:
    """Own time by part of the workload, on the host and off it.

    A part is the chain of annotations (`record_function`) around a node, or around what launched
    it; in a generated trace its phase and layer. Steps of the profiler are no parts. Python frames
    (`nn.Module: …`) are not in ETs: annotate what you want to see.
    """
    parts: list[str] = []
    host: list[npt.NDArray[np.bool_]] = []
    took = []
    for trace in traces.values():
        places = Places(trace)
        rows = np.flatnonzero(places.ran & ~places.carried)
        parts += part_names(trace, places)[rows].tolist()
        host.append(places.on_host[rows])
        took.append(trace.nodes.self_ns[rows])
    code, names = codes(parts)
    keys = Keys.of(code)
    own = np.concatenate([*took, np.zeros(0, np.int64)])
    on_host = np.concatenate([*host, np.zeros(0, np.bool_)])
    columns = {
        "module": texts(names),
        "nodes": keys.count(),
        "host_self_ns": keys.sum(np.where(on_host, own, 0)),
        "device_ns": keys.sum(np.where(on_host, 0, own)),
    }
    note = "" if any(name != OUTSIDE for name in names) else NOTHING_TOLD
    return Table("modules", columns, note).by("host_self_ns").by("device_ns")


def part_names(trace: Trace, places: Places) -> npt.NDArray[np.object_]:
    """The name of the part of the workload that each node belongs to."""
    attributes = trace.nodes.attributes
    if attributes.present("phase").any() or attributes.present("layer").any():
        return _phases(trace)
    names = trace.nodes.names
    shown = ~np.isin(trace.nodes.name_code, [c for c, n in enumerate(names) if STEP.fullmatch(n)])
    nearest = places.nearest(places.annotation & shown)
    chains: dict[int, str] = {-1: OUTSIDE}
    above = places.caller
    for row in np.unique(nearest).tolist():
        chain, at, seen = [], row, 0
        while at >= 0 and seen < 64:
            chain.append(names[int(trace.nodes.name_code[at])])
            at, seen = int(nearest[above[at]]) if above[at] >= 0 else -1, seen + 1
        chains.setdefault(row, " / ".join(reversed(chain)))
    distinct, place = np.unique(nearest, return_inverse=True)
    return np.array([chains[row] for row in distinct.tolist()], object)[place.ravel()]


def _phases(trace: Trace) -> npt.NDArray[np.object_]:
    phase = trace.nodes.attributes.dense("phase", "", object)
    layer = trace.nodes.attributes.dense("layer", -1, object)
    return np.fromiter(
        (
            " / ".join([*([str(p)] if p else []), *([f"layer {k}"] if k != -1 else [])]) or OUTSIDE
            for p, k in zip(phase.tolist(), layer.tolist(), strict=True)
        ),
        object,
        len(trace.nodes),
    )
