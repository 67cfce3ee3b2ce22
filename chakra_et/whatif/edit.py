"""What an edit is: traces in, new traces and what changed out; and what most edits do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from chakra_et.columns import Mask, Rows
from chakra_et.errors import ChakraError
from chakra_et.model import Trace, TraceSet, set_time_parts
from chakra_et.replay import Processors, TransferModel
from chakra_et.replay.columns import Columns, columns_of

if TYPE_CHECKING:
    from chakra_et.whatif.plan_edits import PlanChange


class MissedError(ChakraError):
    """The pattern of an edit is not there: `problem` says what was looked for and missed."""

    def __init__(
        self, missed: str, remedy: str = "docs/whatif.md says what each edit looks for."
    ) -> None:
        super().__init__(missed, remedy=remedy)


@dataclass(frozen=True)
class Change:
    """What an edit changed on all ranks: how many nodes, and how long they take in all.

    `source` says where the new times come from: `scaled` or `drawn` from the recorded ones,
    `added`, `gone`, `repeated`, `merged`, `order` where only waits changed. Times of a `table` of
    kernel times are counted in `provenance`, by calls. Of a change of `structure`, `nodes` are
    those of the new run, and `provenance` counts them by where their times come from; `told` says
    what was recognised, `left_out` counts what the new run lacks.
    """

    what: str
    nodes: int
    before_ns: int
    after_ns: int
    source: str
    provenance: Mapping[str, int] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **self.__dict__,
            "provenance": dict(self.provenance),
            "told": list(self.told),
            "left_out": dict(self.left_out),
        }


@dataclass(frozen=True)
class Edit:
    """One edit with its value: what becomes of traces, and with which network they run.

    `processors` are those that all ranks shared, and those that they are to share. Edits of a
    model's plan have `plan`, so that several of them are made at once.
    """

    text: str
    apply: Callable[[TraceSet], tuple[TraceSet, Change | None]]
    network: TransferModel | None = None
    processors: tuple[Processors, Processors] | None = None
    plan: PlanChange | None = None


Maker: TypeAlias = Callable[[str, str, str], Edit]
"""Makes an edit of its text, its selector (empty for edits without) and its value."""
Factor: TypeAlias = float | npt.NDArray[np.float64]


def scaled(
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
        made[rank] = with_parts(trace, columns, ns) if changed.any() else trace
        owners = np.where(parts.gap, parts.node, parts.owner)[mask]
        nodes += len(np.unique(owners))
        before_ns, after_ns = before_ns + int(parts.ns[mask].sum()), after_ns + int(ns[mask].sum())
    return TraceSet(made), Change(text, nodes, before_ns, after_ns, "scaled")


def with_parts(trace: Trace, columns: Columns, ns: Rows) -> Trace:
    """The trace with other lengths of its parts of time."""
    nodes = trace.nodes.copied()
    parts = replace(columns.parts, ns=ns)
    nodes.duration_ns[:] = parts.by_node(len(nodes))
    set_time_parts(nodes, parts)
    return Trace(nodes, trace.edges, trace.metadata)


def computes(columns: Columns) -> Mask:
    """The parts of time that are no transfer's."""
    return np.asarray(~columns.communication[columns.parts.node])
