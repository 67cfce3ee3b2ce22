"""Edits of the traces of a run: each takes traces and gives new ones, and says what it changed."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Mask, Rows
from chakra_et.errors import ChakraError
from chakra_et.model import EdgeKind, Trace, TraceSet
from chakra_et.replay import network_of
from chakra_et.replay.columns import Columns, columns_of
from chakra_et.replay.selectors import select, select_parts
from chakra_et.whatif.apart import waits_apart
from chakra_et.whatif.edit import Change, Edit, Maker, computes, scaled, with_parts
from chakra_et.whatif.plan_edits import PLAN_EDITS, PLAN_FORMS
from chakra_et.whatif.values import number, numbers, rank_and_factor


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
    """The time of some nodes, multiplied; of a communication, what is no wait for other ranks."""
    factor = number(text, value, least=0)

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        columns = {id(trace): columns_of(trace) for trace in traces.values()}
        known = {key: select_parts(c.trace, c.parts, selector) for key, c in columns.items()}
        moves = any(_moves(c, known[key]) for key, c in columns.items())
        if factor != 1 and len(traces) > 1 and moves:
            # Traces whose waits are out are other ones, to which the selector is put anew.
            traces, known = waits_apart(traces), {}

        def chosen(c: Columns) -> tuple[Mask, float]:
            mask = known.get(id(c.trace))
            return select_parts(c.trace, c.parts, selector) if mask is None else mask, factor

        return scaled(traces, text, chosen)

    return Edit(text, apply)


def _moves(columns: Columns, chosen: Mask) -> bool:
    """Whether some parts of time have any of communication."""
    parts = columns.parts
    return bool(columns.communication[parts.owner[chosen & ~parts.gap]].any())


def _straggler(text: str, _: str, value: str) -> Edit:
    """All that one rank does by itself, multiplied; its transfers stay."""
    slow, factor = rank_and_factor(text, value)

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        if slow not in traces:
            raise ChakraError(f"{text}: there is no rank {slow}", remedy="Name a rank of the run.")
        own = {id(traces[slow]): factor}
        return scaled(traces, text, lambda c: (computes(c), own.get(id(c.trace), 1.0)))

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
            return computes(columns), of_node[columns.parts.node]

        made, change = scaled(traces, text, chosen)
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
    """Transfers overlap with nothing: on a device each waits for all before it, and on a host
    whoever asks for one waits.
    """
    if value != "off":
        raise ChakraError(f"{text}: expected off", remedy="Write overlap=off.")

    def apply(traces: TraceSet) -> tuple[TraceSet, Change]:
        from chakra_et.whatif.transfers import waited_for_at_once

        made, edges = {}, 0
        for rank, trace in traces.items():
            columns = columns_of(trace)
            work = np.flatnonzero(columns.device & columns.timed)
            meets = columns.communication[work]
            if not len(work) or meets.all():
                at_once = waited_for_at_once(trace)
                if at_once is not None:
                    made[rank] = at_once
                    edges += len(at_once.edges) - len(trace.edges)
                    continue
            if not meets.any() or meets.all():
                missing = "other work than transfers" if len(work) and meets.all() else "transfers"
                raise ChakraError(
                    f"{text}: rank {rank} has no {missing} on a device",
                    remedy="Of transfers of host processes, the trace must say who asked for them.",
                )
            made[rank] = _in_one_line(trace, columns, work)
            edges += len(made[rank].edges) - len(trace.edges)
        return TraceSet(made), Change(text, edges, 0, 0, "order")

    return Edit(text, apply)


def _network(text: str, _: str, value: str) -> Edit:
    """Transfers take what a network takes: of a latency and a bandwidth, or of a topology."""
    model = network_of(value, "network")
    return Edit(text, lambda traces: (traces, None), model)


def _of(module: str, name: str) -> Maker:
    """The maker in another module, which is imported by who makes such an edit."""

    def made(text: str, selector: str, value: str) -> Edit:
        maker: Maker = getattr(import_module(f"chakra_et.whatif.{module}"), name)
        return maker(text, selector, value)

    return made


EDITS: Final[dict[str, Maker]] = {
    "time": _time,
    "straggler": _straggler,
    "jitter": _jitter,
    "remove": _remove,
    "overlap": _overlap,
    "network": _network,
    "processors": _of("processors", "shared_processors"),
    "delay": _of("delay", "delay"),
    "repeat": _of("repeat", "repeat"),
    "merge": _of("transfers", "merge"),
    "split": _of("passes", "split"),
    "insert": _of("passes", "insert"),
    "move": _of("passes", "move"),
    "fuse": _of("fusion", "fuse"),
    "lengths": _of("retime", "other_lengths"),
    "device": _of("retime", "other_device"),
    **PLAN_EDITS,
}
FORMS: Final = {
    "time": "time:SELECTOR=FACTOR",
    "straggler": "straggler=RANK:FACTOR",
    "jitter": "jitter=SHARE[,SEED]",
    "remove": "remove:SELECTOR=yes",
    "overlap": "overlap=off",
    "network": "network=US,GB_PER_S|TOPOLOGY",
    "processors": "processors=N[:N][,REGEX]",
    "delay": "delay:SELECTOR=US[,RANK]",
    "repeat": "repeat:SELECTOR=N",
    "merge": "merge:SELECTOR=N",
    "split": "split:SELECTOR=N",
    "insert": "insert:SELECTOR=US",
    "move": "move=[RANK/]ID:OTHER",
    "fuse": "fuse=TABLE.csv",
    "lengths": "lengths=OLD:NEW[,OLD:NEW...][,TABLE]",
    "device": "device=TABLE[:NAME]",
    **PLAN_FORMS,
}
"""How each edit is written."""
_SELECTING: Final = ("time", "remove", "delay", "repeat", "merge", "split", "insert")


def _removed(columns: Columns, chosen: Mask) -> Trace:
    from chakra_et.passes.edit import without_nodes, without_waits

    trace, parts = columns.trace, columns.parts
    owned = np.where(parts.gap, False, chosen[np.maximum(parts.owner, 0)])
    calls = chosen & ~columns.device
    quiet = with_parts(trace, columns, np.where(owned, 0, parts.ns))
    left = without_waits(quiet, calls)
    work = chosen & columns.device
    return without_nodes(left, work) if work.any() else left


def _in_one_line(trace: Trace, columns: Columns, work: Rows) -> Trace:
    """The trace with edges from each transfer to all work up to the next one, and to that."""
    from chakra_et.whatif.transfers import with_waits

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
    return with_waits(trace, np.concatenate(source), np.concatenate(target), EdgeKind.EVENT)
