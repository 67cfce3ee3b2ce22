"""From the activity table to the columns of a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.codes import among
from chakra_et.columns import NO_ROW, UNTIMED, Rows, let_go
from chakra_et.definitions import FORMAT_VERSION, Kind, NodeType
from chakra_et.io.memory import give_back
from chakra_et.linker import activities
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.communication import Communication, Communications
from chakra_et.linker.communication.process_groups import GroupTable
from chakra_et.linker.edge_list import EdgeList
from chakra_et.linker.evidence import Codes, guessed
from chakra_et.linker.output.further_nodes import Graph
from chakra_et.linker.time.own_time import OwnTime
from chakra_et.linker.time.owners import exclusive_ns, main_owners, moments, owned_parts
from chakra_et.linker.time.polls import polling
from chakra_et.model import (
    AttributeColumn,
    AttributeKey,
    AttributeTable,
    CodedTexts,
    Edges,
    Metadata,
    Nodes,
    TextsOfRows,
    Trace,
    set_time_parts,
)
from chakra_et.model.time_parts import TimeParts
from chakra_et.recording import (
    NO_ID,
    DeviceTrace,
    HostTrace,
    Recording,
    Role,
    device_trace,
    host_trace,
)
from chakra_et.recording import Kind as RecordKind
from chakra_et.recording.carried_texts import CarriedTexts
from chakra_et.recording.libraries import RECV, SEND
from chakra_et.version import PRODUCER

JOIN_NAMES: Final = ("join of streams", "join of messages")
"""Nodes without work: between streams and calls that wait, and behind a kernel of messages."""
_FACTS_ONLY: Final = (RecordKind.ROOT, RecordKind.GROUPS, RecordKind.UNRECORDED)
"""Kinds of host nodes that are no work."""
_DELAYS: Final = ("lag_ns", "late_ns", "contention_ns", "return_ns", "release_ns")
_NO_TEXTS: Final = (b"[]", b"[]", b"[]")
_OF_HOST: Final = (
    "id", "rf_id", "fw_parent", "seq_id", "scope", "thread", "fw_thread", "name", "op_schema",
    "inputs", "outputs", "input_strides", "output_strides",
)  # fmt: skip
_OF_DEVICE: Final = (
    "kind", "category", "name", "pid", "tid", "correlation", "sequence", "device", "stream",
    "size_bytes",
)  # fmt: skip
_OF_TABLE: Final = ("record", "role", "start_ns", "end_ns", "lane")
"""The columns of both views, and of the table, that attributes are made of."""
_NO_STRIDES: Final = (b"", b"[]")
_DECLARED: Final = {"uint64": Kind.UINT64, "int64": Kind.INT64, "string": Kind.STRING}


def assemble(
    graph: Graph,
    recording: Recording,
    scopes: dict[int, str],
    communications: Communications,
    groups: GroupTable,
) -> tuple[Trace, Codes]:
    """The trace of all activities in the order of the graph; ids count from 1 in that order.

    The second value is the `Evidence` of each edge. The columns of the recording are let go, each
    when the trace has what it needs of it.
    """
    if recording.host is not None:
        let_go(recording.host, host_trace.COLUMNS, but=_OF_HOST)
    if recording.device is not None:
        let_go(recording.device, device_trace.COLUMNS, but=_OF_DEVICE)
    place = np.empty(len(graph.order), np.int64)
    place[graph.order] = np.arange(len(place))
    edges, evidence = _edges(place, graph.edges)
    graph.edges.clear()
    give_back()
    nodes, parts = _nodes(graph, place, recording, scopes, communications.by_row, groups.rank)
    # All that nodes are made of is gone before the parts become texts.
    parts = parts.moved(place)
    set_time_parts(nodes, parts)
    return Trace(nodes, edges, _metadata(recording.host, recording.device, groups)), evidence


def _nodes(
    graph: Graph,
    place: Rows,
    recording: Recording,
    scopes: dict[int, str],
    communication: dict[int, Communication],
    rank: int | None,
) -> tuple[Nodes, TimeParts]:
    """The nodes with all attributes but the parts of times that are others', and these parts, by
    activity.
    """
    host, table, order, own = recording.host, graph.table, graph.order, graph.own
    delays = _delays(own, order)
    let_go(own, _DELAYS)  # Few nodes have any.
    pieces = moments(table)
    parts = owned_parts(table, pieces, own.begin_ns, own.end_ns)
    owners, exclusive = main_owners(table, parts), exclusive_ns(table, pieces)
    view = _View(table, host, recording.device, order, place, owners, exclusive)
    let_go(table, activities.COLUMNS, but=_OF_TABLE)
    give_back()
    del pieces
    start_ns, own_start_ns = table.start_ns.take(order), own.begin_ns.take(order)
    timed = start_ns != UNTIMED
    nodes = Nodes(
        id=np.arange(1, len(order) + 1, dtype=np.uint64),
        type=_types(view, communication),
        name_code=view.name_code(),
        names=view.names(),
        start_ns=start_ns,
        duration_ns=np.where(timed, own.end_ns.take(order) - own_start_ns, 0),
        input_code=view.texts("inputs"),
        output_code=view.texts("outputs"),
        texts=[] if host is None else host.texts.in_order,
        attributes=_attributes(view, communication, rank),
        exact_start=timed,
        exact_duration=timed,
    )
    moved = np.flatnonzero(timed & (own_start_ns != start_ns))
    nodes.attributes.add("own_start_ns", Kind.INT64, own_start_ns[moved], moved)
    for name, rows, values in delays:
        nodes.attributes.add(name, Kind.INT64, values, rows)
    waiting = sorted((int(view.place[call]), scope) for call, scope in scopes.items())
    calls = np.array([row for row, _ in waiting], np.int64)
    nodes.attributes.add("sync_on", Kind.STRING, [scope for _, scope in waiting], calls)
    further = np.argsort(view.place[graph.further])
    kernels = (view.place[graph.kernels] + 1).astype(np.uint64)[further]
    nodes.attributes.add("same_kernel", Kind.UINT64, kernels, view.place[graph.further][further])
    return nodes, parts


def _delays(own: OwnTime, order: Rows) -> list[tuple[str, Rows, Rows]]:
    """Why nodes begin or end when they do, where that is not what they wait for: names, rows and
    values of attributes.
    """
    found = []
    for name in _DELAYS:
        values = getattr(own, name)
        rows = np.flatnonzero(((values != 0) & (values != UNTIMED)).take(order))
        found.append((name, rows, values[order[rows]]))
    return found


class _View:
    """The activity table in the order of the nodes; row r is node r."""

    def __init__(
        self,
        table: Activities,
        host: HostTrace | None,
        device: DeviceTrace | None,
        order: Rows,
        place: Rows,
        rest_of: Rows,
        exclusive_ns: Rows,
    ) -> None:
        self.table = table
        self.host = host
        self.device = device
        self.order = order
        self.exclusive_ns = exclusive_ns.take(order)
        self.place = place
        self.host_row = table.host.take(order)
        self.record = table.record.take(order)
        self.role = table.role.take(order)
        self.on_stream = among(table.lane, table.lane[table.work]).take(order)
        # The rests of others are shown as what they go on with.
        self.rests, self.rest_of = self.place[table.rests], self.place[rest_of]
        self.shown = self.record.copy()
        self.shown[self.rests] = self.record[self.rest_of]
        self.on_host = np.flatnonzero(self.host_row != NO_ROW)
        self.on_record = np.flatnonzero(self.record != NO_ROW)
        self.rows_of_host = self.host_row[self.on_host]

    def names(self) -> list[str]:
        mine = [] if self.host is None else self.host.names.in_order
        theirs = [] if self.device is None else self.device.names.in_order
        return [*mine, *theirs, *JOIN_NAMES]

    def name_code(self) -> npt.NDArray[np.int32]:
        code = np.zeros(len(self.order), np.int32)
        if self.device is not None:
            before = 0 if self.host is None else len(self.host.names)
            code[self.on_record] = before + self.device.name.take(self.record.take(self.on_record))
        if self.host is not None:
            code[self.on_host] = self.from_host("name")
        joins = np.flatnonzero(self.role == Role.SYNC)
        code[joins] = len(self.names()) - len(JOIN_NAMES) + self.on_stream[joins]
        code[self.rests] = code[self.rest_of]
        return code

    def texts(self, side: str) -> npt.NDArray[np.int32]:
        code = np.full(len(self.order), -1, np.int32)
        if self.host is not None:
            code[self.on_host] = self.from_host(side)
            empty = self.host.texts.get(_NO_TEXTS)
            if empty is not None:
                code[code == empty] = -1
        return code

    def from_host(self, name: str) -> Any:
        """A column of the host trace for the nodes `on_host`."""
        return getattr(self.host, name).take(self.rows_of_host)

    def from_record(self, name: str, rows: Rows) -> Any:
        """A column of the profile for the given nodes."""
        return getattr(self.device, name).take(self.shown.take(rows))


def _types(view: _View, communication: dict[int, Communication]) -> npt.NDArray[np.int32]:
    types = np.full(len(view.order), NodeType.COMP, np.int32)
    host = view.host
    if host is not None:
        facts_only = among(host.kind, _FACTS_ONLY)
        rows = view.on_host
        types[rows[facts_only[view.host_row[rows]]]] = NodeType.METADATA
    for activity, facts in communication.items():
        types[view.place[activity]] = facts.type
    return types


def _edges(place: Rows, edges: list[EdgeList]) -> tuple[Edges, Codes]:
    """The edges of the trace, and the `Evidence` of each.

    Of several between the same two nodes one is kept: a stated one, else the first.
    """
    target = place.take(np.concatenate([e.target for e in edges]))
    source = (place.take(np.concatenate([e.source for e in edges])) + 1).view(np.uint64)
    kind = np.concatenate([np.full(len(e), e.kind, np.uint8) for e in edges])
    evidence = np.concatenate([e.evidence for e in edges])
    inferred = guessed(evidence)
    places = Edges.in_rows(target, source, kind, inferred)
    kept = Edges.from_rows(
        len(place),
        target.take(places),
        source.take(places),
        kind.take(places),
        inferred.take(places),
    )
    return kept, evidence.take(places)


def _attributes(
    view: _View, communication: dict[int, Communication], rank: int | None
) -> AttributeTable:
    attributes = AttributeTable(len(view.order))
    on_cpu = ~view.on_stream
    on_cpu[view.place[np.array(list(communication), np.int64)]] = False
    attributes.add("is_cpu_op", Kind.BOOL, on_cpu)
    _add_communication(attributes, view, communication, rank)
    if view.device is not None:
        _add_record_columns(attributes, view)
    if view.host is not None:
        _add_host_columns(attributes, view, view.host)
    return attributes


def _add_integers(
    attributes: AttributeTable, name: str, rows: Rows, values: Any, absent: int | None = None
) -> None:
    if absent is not None:
        told = np.flatnonzero(values != absent)
        rows, values = rows.take(told), values.take(told)
    attributes.add(name, Kind.INT64, values, rows)


def _add_texts(
    attributes: AttributeTable,
    name: str,
    rows: Rows,
    codes: Any,
    pool: list[str],
) -> None:
    """Text by code; nodes whose text is empty get none."""
    use = np.flatnonzero(np.array([*map(bool, pool), False])[codes])
    key = AttributeKey(name, Kind.STRING)
    attributes.add_column(AttributeColumn(key, rows[use], CodedTexts(codes[use], pool)))


def _add_record_columns(attributes: AttributeTable, view: _View) -> None:
    device, rows = view.device, view.on_record
    assert device is not None
    rests = np.sort(view.rests)
    has_record = view.record != NO_ROW
    has_record[rests] = True
    shown = np.flatnonzero(has_record)
    codes = view.from_record("category", shown)
    _add_texts(attributes, "category", shown, codes, device.categories.in_order)
    threads = shown[view.role[shown] != Role.WORK]
    if "thread" not in device.silent_on:
        _add_integers(attributes, "thread", threads, view.from_record("tid", threads))
    goes_on = (view.rest_of[np.argsort(view.rests)] + 1).astype(np.uint64)
    attributes.add("rest_of", Kind.UINT64, goes_on, rests)
    threads = threads[~among(threads, rests)]
    table, lasting = view.table, view.order[threads]
    inclusive = np.where(
        table.lane[lasting] != NO_ROW, table.end_ns[lasting] - table.start_ns[lasting], 0
    )
    _add_integers(attributes, "inclusive_ns", threads, inclusive)
    _add_integers(attributes, "exclusive_ns", threads, view.exclusive_ns[threads])
    polls = np.flatnonzero(polling(view.table, device)[view.order])
    attributes.add("polling", Kind.BOOL, np.ones(len(polls), np.bool_), polls)
    calls = rows[view.role[rows] != Role.OP]
    _add_integers(attributes, "correlation", calls, view.from_record("correlation", calls), NO_ID)
    work = np.flatnonzero(view.role == Role.WORK)
    if "device" not in device.silent_on:
        _add_integers(attributes, "device", work, device.devices(view.shown[work]))
    _add_integers(attributes, "stream", work, device.streams(view.shown[work]))
    size = view.from_record("size_bytes", work)
    sized = size != NO_ID
    attributes.add("tensor_size", Kind.UINT64, size[sized].astype(np.uint64), work[sized])
    _add_args(attributes, device, work, view.record[work])
    let_go(device, device_trace.COLUMNS, but=("sequence",))  # which operations of the host have
    let_go(view.table, activities.COLUMNS)


def _add_args(attributes: AttributeTable, device: DeviceTrace, work: Rows, records: Rows) -> None:
    """What the profiler says else of work; texts that are packed stay so until they are written."""
    args, key = device.args, AttributeKey("device_args", Kind.STRING)
    if isinstance(args, CarriedTexts):
        attributes.add_column(AttributeColumn(key, work, TextsOfRows(args.at, records)))
    else:
        attributes.add_column(AttributeColumn(key, work, [args[row] for row in records.tolist()]))


def _add_host_columns(attributes: AttributeTable, view: _View, host: HostTrace) -> None:
    rows = view.on_host
    attributes.add("host_id", Kind.UINT64, view.from_host("id"), rows)
    _add_integers(attributes, "rf_id", rows, view.from_host("rf_id"), 0)
    _add_integers(attributes, "fw_parent", rows, view.from_host("fw_parent"), 0)
    _add_integers(attributes, "seq_id", rows, _sequence(view), -1)
    _add_integers(attributes, "scope", rows, view.from_host("scope"))
    _add_integers(attributes, "tid", rows, view.from_host("thread"), 0)
    _add_integers(attributes, "fw_tid", rows, view.from_host("fw_thread"), 0)
    schemas = host.op_schemas.in_order
    _add_texts(attributes, "op_schema", rows, view.from_host("op_schema"), schemas)
    strides = [
        "" if text in _NO_STRIDES else text.decode("utf-8", "replace")
        for text in host.strides.in_order
    ]
    for name in ("input_strides", "output_strides"):
        codes = view.from_host(name)
        _add_texts(attributes, name, rows, codes, strides)
    place = np.empty(len(host), np.int64)
    place[view.host_row[rows]] = rows
    for name, attribute in host.attributes.items():
        kind = _DECLARED.get(attribute.declared_type, Kind.STRING)
        values = attribute.values
        if kind is Kind.STRING:
            values = [v if isinstance(v, str) else msgspec.json.encode(v).decode() for v in values]
        at = place[np.array(attribute.rows, np.int64)]
        by_row = np.argsort(at, kind="stable")
        # Communication nodes have some of these already, merged from all sources.
        new = by_row[~attributes.present(name)[at[by_row]]]
        attributes.add(name, kind, [values[i] for i in new.tolist()], at[new])
    let_go(host, host_trace.COLUMNS)


def _sequence(view: _View) -> Rows:
    """Sequence numbers; the profile has those of the wrappers of backward operations too."""
    sequence: Rows = view.from_host("seq_id").copy()
    if view.device is not None:
        record = view.record[view.on_host]
        told = np.flatnonzero((sequence < 0) & (record != NO_ROW))
        sequence[told] = view.device.sequence[record[told]]
    return sequence


def _add_communication(
    attributes: AttributeTable,
    view: _View,
    communication: dict[int, Communication],
    rank: int | None,
) -> None:
    """Facts of collectives and of messages between two ranks, in the kinds that simulators read."""
    nodes = sorted((int(view.place[row]), facts) for row, facts in communication.items())

    def add(name: str, kind: Kind, fact: Callable[[Communication], Any]) -> None:
        known = [(row, value) for row, c in nodes if (value := fact(c)) is not None]
        rows = np.array([row for row, _ in known], np.int64)
        attributes.add(name, kind, [value for _, value in known], rows)

    add("comm_type", Kind.INT64, lambda c: c.collective)
    add("comm_size", Kind.INT64, lambda c: c.facts.size_bytes)
    add("pg_name", Kind.STRING, lambda c: c.group)
    add("pg_candidates", Kind.STRING, _candidates)
    add("comm_src", Kind.INT32, lambda c: {SEND: rank, RECV: c.facts.peer}.get(c.type))
    add("comm_dst", Kind.INT32, lambda c: {SEND: c.facts.peer, RECV: rank}.get(c.type))
    # Where no tag is recorded, equal ones match sends and receives in order.
    add("comm_tag", Kind.INT32, lambda c: (c.facts.tag or 0) if c.type in (SEND, RECV) else None)
    add("device_pieces", Kind.INT64, lambda c: c.pieces)
    add("comm_facts", Kind.STRING, lambda c: ", ".join(dict.fromkeys(c.facts.sources)))


def _candidates(communication: Communication) -> str | None:
    names = communication.candidates
    return msgspec.json.encode(names).decode() if names else None


def _metadata(host: HostTrace | None, device: DeviceTrace | None, groups: GroupTable) -> Metadata:
    metadata = Metadata(FORMAT_VERSION)
    metadata.set("producer", Kind.STRING, PRODUCER)
    if host is not None:
        metadata.set("schema", Kind.STRING, host.schema)
        metadata.set("pid", Kind.UINT64, host.pid)
        metadata.set("time", Kind.STRING, host.time)
        metadata.set("start_ts", Kind.UINT64, host.start_ts)
        metadata.set("finish_ts", Kind.UINT64, host.finish_ts)
        if host.metadata:
            metadata.set("host_metadata", Kind.STRING, msgspec.json.encode(host.metadata).decode())
    if device is not None:
        if device.device_properties:
            encoded = msgspec.json.encode(device.device_properties).decode()
            metadata.set("device_properties", Kind.STRING, encoded)
        metadata.set("trace_name", Kind.STRING, _text(device.trace_name))
        metadata.set("base_time_ns", Kind.INT64, device.base_time_ns or None)
        if device.metadata:
            encoded = msgspec.json.encode(device.metadata).decode()
            metadata.set("profile_metadata", Kind.STRING, encoded)
    metadata.set("rank", Kind.INT64, groups.rank)
    metadata.set("world_size", Kind.INT64, groups.world_size)
    trace_groups = list(groups.groups.values())
    if trace_groups:
        metadata.set("process_groups", Kind.STRING, msgspec.json.encode(trace_groups).decode())
    return metadata


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
