"""Traces with what a policy allows, made anew: nothing is copied that the policy does not name."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from chakra_et.anonymise.columns import add_fitting, sound_values
from chakra_et.anonymise.merging import merged
from chakra_et.anonymise.policy import Names, Policy
from chakra_et.anonymise.pseudonyms import PUBLIC, Pseudonyms, family
from chakra_et.anonymise.rules import PHASES, RULES, Treatment
from chakra_et.anonymise.values import on_grid, shapes_text, sizes, types_text
from chakra_et.columns import Rows
from chakra_et.definitions import FORMAT_VERSION, Kind, NodeType
from chakra_et.errors import ChakraError
from chakra_et.model import (
    UNKNOWN_NS,
    Edges,
    Metadata,
    Nodes,
    ProcessGroup,
    Trace,
    TraceSet,
    set_time_parts,
    time_parts,
)
from chakra_et.replay import replay

_COMMUNICATION: Final = (NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV)
_MOST_RANKS: Final = 1 << 24
_WAIT: Final = re.compile(r"device( -?[0-9]{1,18})?|stream( -?[0-9]{1,18}){0,2}")


@dataclass
class Anonymised:
    """The new traces, by their new ranks, and what was done to how many values."""

    traces: TraceSet
    account: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"ranks": len(self.traces), "account": dict(sorted(self.account.items()))}


def anonymise(traces: TraceSet, policy: Policy, secret: bytes) -> Anonymised:
    """Traces of which only stays what a policy allows.

    Pseudonyms, the order of ranks and changes of times follow from `secret`: equal names get equal
    pseudonyms in all traces that were made with it, and nobody without it can tell them.
    """
    names = Pseudonyms(secret)
    ranks = _new_ranks(traces, policy, names)
    account = Counter[str]()
    made = {
        ranks[rank]: _Maker(trace, policy, names, ranks, account).made()
        for rank, trace in sorted(traces.items(), key=lambda item: ranks[item[0]])
    }
    result = TraceSet(made)
    if policy.time_error or policy.time_grid_ns > 1:
        result = _timed_anew(result)
    return Anonymised(result, account)


def _new_ranks(traces: TraceSet, policy: Policy, names: Pseudonyms) -> dict[int, int]:
    """The new number of every rank of the world."""
    told = [group.ranks for group in traces.groups]
    known = {*traces, *(rank for ranks in told for rank in ranks)}
    size = max([max(known) + 1, *(trace.world_size or 0 for trace in traces.values())])
    if size > _MOST_RANKS:
        raise ChakraError(
            f"the traces tell of {size:,} ranks; at most {_MOST_RANKS:,} can be numbered anew",
            remedy="Look at world_size and the ranks of process groups with `chakra info`.",
        )
    order = np.arange(size)
    if policy.shuffle_ranks:
        order = names.random("ranks", str(size)).permutation(size)
    return dict(enumerate(order.tolist()))


def _timed_anew(traces: TraceSet) -> TraceSet:
    """The traces with the starts of a replay, each from 0 on; without recorded starts, as given."""
    if all((trace.nodes.start_ns == UNKNOWN_NS).all() for trace in traces.values()):
        return traces
    replayed = replay(traces).traces
    result = {}
    for rank, trace in replayed.items():
        known = trace.nodes.start_ns != UNKNOWN_NS
        starts = trace.nodes.start_ns[known]
        if len(starts):
            trace.nodes.start_ns[known] = starts - starts.min()
        result[rank] = trace
    return TraceSet(result)


class _Maker:
    """Makes one trace."""

    def __init__(
        self,
        trace: Trace,
        policy: Policy,
        names: Pseudonyms,
        ranks: dict[int, int],
        account: Counter[str],
    ) -> None:
        self.given = trace
        self.trace = merged(trace) if policy.merge else trace
        self.policy, self.names, self.ranks, self.account = policy, names, ranks, account
        self.origin = _origin(trace)
        self.numbers: dict[str, dict[int, int]] = {}
        self.factor = self._factors()

    def made(self) -> Trace:
        """The new trace."""
        old = self.trace.nodes
        duration = self._times(old.duration_ns, np.arange(len(old)))
        codes, texts = self._texts()
        timed = old.start_ns != UNKNOWN_NS
        names, name_code = self._names()
        nodes = Nodes(
            id=np.arange(len(old), dtype=np.uint64),
            type=old.type,
            name_code=name_code,
            names=names,
            start_ns=np.where(timed, old.start_ns - self.origin, UNKNOWN_NS),
            duration_ns=duration,
            input_code=codes[0],
            output_code=codes[1],
            texts=texts,
            exact_start=timed,
            exact_duration=np.ones(len(old), np.bool_),
        )
        self._attributes(nodes)
        if "time_parts" in self.policy.keep:
            parts = time_parts(old)
            parts = replace(parts, ns=self._times(parts.ns, parts.node))
            set_time_parts(nodes, parts.fitted(duration))
        trace = Trace(nodes, self._edges(), self._metadata())
        self._account(trace)
        return trace

    def _factors(self) -> npt.NDArray[np.float64]:
        """By how much the times of each node change; transfers of all ranks by one factor."""
        nodes, error = self.trace.nodes, self.policy.time_error
        if not error:
            return np.ones(len(nodes))
        # Another run has other changes, so that no quotient of two traces is exact.
        told = hashlib.sha256(self.given.nodes.duration_ns.tobytes()).hexdigest()
        of_run = self.names.random("times", f"{self.given.rank or 0} {told}")
        factors = 1 + of_run.uniform(-error, error, len(nodes))
        common = 1 + self.names.random("transfers", "").uniform(-error, error)
        return np.where(np.isin(nodes.type, _COMMUNICATION), common, factors)

    def _times(self, values_ns: Rows, rows: Rows) -> Rows:
        if self.policy.time_error:
            values_ns = np.rint(values_ns * self.factor[rows]).astype(np.int64)
        return on_grid(values_ns, self.policy.time_grid_ns)

    def _names(self) -> tuple[list[str], npt.NDArray[np.int32]]:
        old = self.trace.nodes
        pairs = np.stack((old.name_code.astype(np.int64), old.type.astype(np.int64)))
        distinct, code = np.unique(pairs, axis=1, return_inverse=True)
        said = [self._name(old.names[name], kind) for name, kind in distinct.T.tolist()]
        names = sorted(set(said))
        place = {name: i for i, name in enumerate(names)}
        table = np.array([place[name] for name in said], np.int32)
        return names, table[code.reshape(-1)] if len(said) else np.zeros(0, np.int32)

    def _name(self, name: str, node_type: int) -> str:
        if self.policy.names is Names.PUBLIC and name in PUBLIC:
            return name
        if self.policy.names is Names.TYPE:
            known = node_type in set(NodeType)
            return NodeType(node_type).name.lower() if known else "other"
        return self.names.of(family(name, node_type), name)

    def _texts(self) -> tuple[list[npt.NDArray[np.int32]], list[tuple[bytes, ...]]]:
        """Inputs and outputs without their values, and with the shapes and types that may stay."""
        old = self.trace.nodes
        place: dict[tuple[bytes, ...], int] = {}
        changed: dict[int, int] = {}
        columns = []
        for column in (old.input_code, old.output_code):
            for code in np.unique(column[column >= 0]).tolist():
                _, shapes, types = old.texts[code][:3]
                text = b"", shapes_text(shapes, self.policy), types_text(types, self.policy)
                changed[code] = place.setdefault(text, len(place)) if any(text) else -1
            table = np.full(max([-1, *changed]) + 2, -1, np.int32)
            table[list(changed)] = list(changed.values())
            columns.append(table[column])
        return columns, list(place)

    def _attributes(self, nodes: Nodes) -> None:
        """Give nodes the attributes that may stay, each kind by its rule."""
        for name in self.policy.keep:
            treat = self._treatments().get(RULES[name])
            for column in self.trace.nodes.attributes.named(name) if treat else []:
                sound = sound_values(column)
                if treat and sound is not None:
                    values = treat(name, sound.values, sound.rows)
                    add_fitting(nodes.attributes, sound, values)

    def _treatments(self) -> dict[Treatment, Callable[[str, Any, Rows], Any]]:
        return {
            Treatment.AS_IS: self._as_is,
            Treatment.SIZE: lambda _, v, __: sizes(np.asarray(v, np.int64), self.policy.size_error),
            Treatment.TIME: lambda _, v, rows: self._times(np.asarray(v, np.int64), rows),
            Treatment.INSTANT: lambda _, v, __: np.asarray(v, np.int64) - self.origin,
            Treatment.RANK: lambda _, v, __: np.array([self.ranks.get(int(r), -1) for r in v]),
            Treatment.NUMBER: self._numbered,
            Treatment.ORDER: lambda _, v, __: 1 + np.unique(v, return_inverse=True)[1].reshape(-1),
            Treatment.WAIT: lambda _, v, __: [self._wait(text) for text in v],
            Treatment.GROUP: lambda _, v, __: [self._group(text) for text in v],
        }

    def _as_is(self, name: str, values: Any, _: Rows) -> Any:
        if name == "phase":
            return [str(v) if v in PHASES else "other" for v in values]
        return values

    def _numbered(self, name: str, values: Any, _: Rows) -> Any:
        return np.array([self._number(name, int(value)) for value in values], np.int64)

    def _number(self, name: str, value: int) -> int:
        """The new number; tags have the same on all ranks."""
        if name == "comm_tag":
            return int.from_bytes(self.names.digest(name, str(value))[:3], "big") if value else 0
        numbers = self.numbers.setdefault(name, {})
        return numbers.setdefault(value, len(numbers))

    def _wait(self, text: str) -> str | None:
        """`stream 0 7` or `device 0` with the new numbers; None for a text that is neither."""
        if not _WAIT.fullmatch(text):
            return None
        what, *numbers = text.split()
        names = ("device", "stream")[: len(numbers)]
        new = [str(self._number(n, int(text))) for n, text in zip(names, numbers, strict=True)]
        return " ".join([what, *new])

    def _group(self, name: str) -> str:
        return self.names.of("group", name) if name else ""

    def _edges(self) -> Edges:
        edges, source = self.trace.edges, self.trace.source_rows()
        there = source >= 0
        self.account["edges to nodes that are not there, dropped"] += int((~there).sum())
        return Edges.collect(
            len(self.trace.nodes),
            edges.target[there],
            source[there].astype(np.uint64),
            edges.kind[there],
            edges.inferred[there],
        )

    def _metadata(self) -> Metadata:
        metadata = Metadata(FORMAT_VERSION)
        if self.given.rank is not None:
            metadata.set("rank", Kind.INT64, self.ranks[self.given.rank])
        if self.given.world_size is not None:
            metadata.set("world_size", Kind.INT64, self.given.world_size)
        groups = [
            ProcessGroup(
                name=self._group(group.name),
                ranks=self._members(group.ranks),
                size=group.size,
            )
            for group in self.given.groups
        ]
        trace = Trace(Nodes(**_nothing()), Edges.empty(0), metadata)
        if groups:
            trace.groups = tuple(sorted(groups, key=lambda g: g.name))
        return trace.metadata

    def _members(self, ranks: tuple[int, ...]) -> tuple[int, ...]:
        """The new numbers of a group's ranks; if ranks are shuffled, their order tells nothing."""
        new = [self.ranks[rank] for rank in ranks if rank in self.ranks]
        return tuple(sorted(new) if self.policy.shuffle_ranks else new)

    def _account(self, made: Trace) -> None:
        """Count what stayed, changed and went."""
        given = self.given.nodes
        self.account["nodes"] += len(given)
        self.account["nodes merged into others"] += len(given) - len(made.nodes)
        stay = {name for name in made.nodes.names if name in PUBLIC}
        self.account["names kept"] += len(stay)
        self.account["names replaced"] += len(set(given.names)) - len(stay)
        for column in given.attributes.columns:
            name = column.key.name
            kept = bool(made.nodes.attributes.named(name))
            self.account[f"attribute {'kept' if kept else 'dropped'}"] += len(column.rows)
        self.account["values of arguments dropped"] += int((given.input_code >= 0).sum())
        unknown = len(given.extra) + bool(self.given.metadata.extra)
        self.account["records with unknown fields, which were dropped"] += unknown
        kept_facts = {a.key.name for a in made.metadata.attributes}
        gone = [a for a in self.given.metadata.attributes if a.key.name not in kept_facts]
        self.account["facts of the trace dropped"] += len(gone)


def _origin(trace: Trace) -> int:
    starts = trace.nodes.start_ns[trace.nodes.start_ns != UNKNOWN_NS]
    return int(starts.min()) if len(starts) else 0


def _nothing() -> dict[str, Any]:
    empty = np.zeros(0, np.int64)
    return {
        "id": empty,
        "type": empty,
        "name_code": empty,
        "names": [],
        "start_ns": empty,
        "duration_ns": empty,
    }
