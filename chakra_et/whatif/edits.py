"""Edits of the traces of a run: each takes traces and gives new ones, and says what it changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.errors import ChakraError
from chakra_et.model import EdgeKind, Edges, Nodes, Trace, TraceSet, set_time_parts
from chakra_et.passes.edit import without_nodes, without_waits
from chakra_et.replay import TransferModel, network_of
from chakra_et.replay.columns import Columns, columns_of
from chakra_et.replay.selectors import select, select_parts
from chakra_et.whatif.values import number, numbers, rank_and_factor


@dataclass(frozen=True)
class Change:
    """What an edit changed on all ranks: how many nodes, and how long they take in all.

    `source` says where the new times come from: `scaled` or `drawn` from the recorded ones, `gone`,
    or `order` where only waits changed.
    """

    what: str
    nodes: int
    before_ns: int
    after_ns: int
    source: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dict(self.__dict__)


@dataclass(frozen=True)
class Edit:
    """One edit with its value: what becomes of traces, and with which network they run."""

    text: str
    apply: Callable[[TraceSet], tuple[TraceSet, Change | None]]
    network: TransferModel | None = None


def parse_edit(text: str) -> Edit:
    """The edit that `KEY=VALUE` names. Raises ChakraError for one that is not understood."""
    key, found, value = text.rpartition("=")
    name, _, selector = key.partition(":")
    maker = EDITS.get(name)
    if not found or maker is None or bool(selector) != (name in _SELECTING):
        raise ChakraError(
            f"invalid edit {text!r}",
            remedy=f"Write one of {', '.join(FORMS.values())}.",
        )
    return maker(text, selector, value)


def _time(text: str, selector: str, value: str) -> Edit:
    """The time of some nodes, multiplied."""
    factor = number(text, value, least=0)

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        return _scaled(traces, text, lambda c: (select_parts(c.trace, c.parts, selector), factor))

    return Edit(text, apply)


def _straggler(text: str, _: str, value: str) -> Edit:
    """All that one rank does by itself, multiplied; its transfers stay."""
    slow, factor = rank_and_factor(text, value)

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        if slow not in traces:
            raise ChakraError(f"{text}: there is no rank {slow}", remedy="Name a rank of the run.")
        own = {id(traces[slow]): factor}
        return _scaled(traces, text, lambda c: (_computes(c), own.get(id(c.trace), 1.0)))

    return Edit(text, apply)


def _jitter(text: str, _: str, value: str) -> Edit:
    """Every node takes longer or shorter by a share, at random; transfers stay."""
    share, seed = numbers(text, value, defaults=(0.0, 0.0))
    if not 0 <= share < 1:
        raise ChakraError(f"{text}: expected a share from 0 to 1", remedy="Write jitter=0.05.")

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        random = np.random.default_rng(int(seed))

        def chosen(columns: Columns) -> tuple[Mask, npt.NDArray[np.float64]]:
            of_node = 1 + random.uniform(-share, share, len(columns))
            return _computes(columns), of_node[columns.parts.node]

        made, change = _scaled(traces, text, chosen)
        return made, replace(change, source="drawn")

    return Edit(text, apply)


def _remove(text: str, selector: str, value: str) -> Edit:
    """Some operations are not done: device work and transfers go, calls take no time and wait for
    nothing.
    """
    if value != "yes":
        raise ChakraError(f"{text}: expected yes", remedy=f"Write remove:{selector}=yes.")

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        made, nodes, gone_ns = {}, 0, 0
        for rank, trace in traces.items():
            columns = columns_of(trace)
            chosen = select(trace, selector)
            own = columns.parts.by_owner(len(columns))
            nodes, gone_ns = nodes + int(chosen.sum()), gone_ns + int(own[chosen].sum())
            made[rank] = _removed(columns, chosen)
        return TraceSet(made), Change(text, nodes, gone_ns, 0, "gone")

    return Edit(text, apply)


def _overlap(text: str, _: str, value: str) -> Edit:
    """Transfers on a device overlap with nothing: each waits for all before it."""
    if value != "off":
        raise ChakraError(f"{text}: expected off", remedy="Write overlap=off.")

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        made, edges = {}, 0
        for rank, trace in traces.items():
            columns = columns_of(trace)
            work = np.flatnonzero(columns.device & columns.timed)
            meets = columns.communication[work]
            if not meets.any() or meets.all():
                missing = "other work than transfers" if len(work) and meets.all() else "transfers"
                raise ChakraError(
                    f"{text}: rank {rank} has no {missing} on a device",
                    remedy="Transfers of host processes cannot be told from what overlaps them.",
                )
            made[rank] = _in_one_line(trace, columns, work)
            edges += len(made[rank].edges) - len(trace.edges)
        return TraceSet(made), Change(text, edges, 0, 0, "order")

    return Edit(text, apply)


def _network(text: str, _: str, value: str) -> Edit:
    """Transfers take what a network takes: of a latency and a bandwidth, or of a topology."""
    model = network_of(value, "network")
    return Edit(text, lambda traces: (traces, None), model)


EDITS: Final[dict[str, Callable[[str, str, str], Edit]]] = {
    "time": _time,
    "straggler": _straggler,
    "jitter": _jitter,
    "remove": _remove,
    "overlap": _overlap,
    "network": _network,
}
FORMS: Final = {
    "time": "time:SELECTOR=FACTOR",
    "straggler": "straggler=RANK:FACTOR",
    "jitter": "jitter=SHARE[,SEED]",
    "remove": "remove:SELECTOR=yes",
    "overlap": "overlap=off",
    "network": "network=US,GB_PER_S|TOPOLOGY",
}
"""How each edit is written."""
_SELECTING: Final = ("time", "remove")

Factor = float | npt.NDArray[np.float64]


def _scaled(
    traces: TraceSet, text: str, chosen: Callable[[Columns], tuple[Mask, Factor]]
) -> tuple[TraceSet, Change]:
    """The traces with some parts of time multiplied."""
    made, nodes, before_ns, after_ns = {}, 0, 0, 0
    for rank, trace in traces.items():
        columns = columns_of(trace)
        parts = columns.parts
        mask, factor = chosen(columns)
        factors = np.where(mask, factor, 1.0)
        changed = factors != 1
        ns = parts.ns.copy()
        ns[changed] = np.rint(ns[changed] * factors[changed]).astype(np.int64)
        made[rank] = _with_parts(trace, columns, ns) if changed.any() else trace
        owners = np.where(parts.gap, parts.node, parts.owner)[mask]
        nodes += len(np.unique(owners))
        before_ns, after_ns = before_ns + int(parts.ns[mask].sum()), after_ns + int(ns[mask].sum())
    return TraceSet(made), Change(text, nodes, before_ns, after_ns, "scaled")


def _with_parts(trace: Trace, columns: Columns, ns: Rows) -> Trace:
    """The trace with other lengths of its parts of time."""
    nodes = _copied(trace.nodes)
    parts = replace(columns.parts, ns=ns)
    nodes.duration_ns[:] = parts.by_node(len(nodes))
    set_time_parts(nodes, parts)
    return Trace(nodes, trace.edges, trace.metadata)


def _computes(columns: Columns) -> Mask:
    """The parts of time that are no transfer's."""
    return np.asarray(~columns.communication[columns.parts.node])


def _removed(columns: Columns, chosen: Mask) -> Trace:
    trace, parts = columns.trace, columns.parts
    owned = np.where(parts.gap, False, chosen[np.maximum(parts.owner, 0)])
    calls = chosen & ~columns.device
    quiet = _with_parts(trace, columns, np.where(owned, 0, parts.ns))
    left = without_waits(quiet, calls)
    work = chosen & columns.device
    return without_nodes(left, work) if work.any() else left


def _in_one_line(trace: Trace, columns: Columns, work: Rows) -> Trace:
    """The trace with edges from each transfer to all work up to the next one, and to that."""
    device = trace.nodes.attributes.dense("device", 0, np.int64)[work]
    source: list[Rows] = []
    target: list[Rows] = []
    for place in np.unique(device).tolist():
        mine = work[device == place]
        order = mine[np.lexsort((mine, columns.start[mine]))]
        meets = columns.communication[order]
        turn = np.cumsum(meets)
        transfers = order[meets]
        after = (turn > 0) & ~meets
        before = (turn < len(transfers)) & ~meets
        source += [transfers[turn[after] - 1], order[before], transfers[:-1]]
        target += [order[after], transfers[turn[before]], transfers[1:]]
    edges, added = trace.edges, np.concatenate(source)
    changed = Edges.collect(
        len(trace.nodes),
        np.concatenate((edges.target, *target)),
        np.concatenate((edges.source, trace.nodes.id[added])),
        np.append(edges.kind, np.full(len(added), EdgeKind.EVENT, np.uint8)),
        np.append(edges.inferred, np.ones(len(added), np.bool_)),
    )
    return Trace(trace.nodes, changed, trace.metadata)


def _copied(nodes: Nodes) -> Nodes:
    return nodes.take(np.arange(len(nodes)))
