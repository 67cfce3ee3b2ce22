"""A recording that no converter has made: the linker needs its tables alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.io.repairs import Repairs
from chakra_et.linker import Linked, link
from chakra_et.model import EdgeKind
from chakra_et.pool import Pool
from chakra_et.recording import (
    DeviceTrace,
    Facts,
    Kind,
    Recording,
    Role,
    Sparse,
    Waits,
)

PATH = Path("by hand")
RECORDS = (
    # role, kind, category, name, tid, start, duration, correlation, stream
    (Role.OP, Kind.OTHER, "range", "step", 1, 0, 10_000, -1, -1),
    (Role.CALL, Kind.OTHER, "api", "launch a", 1, 100, 100, 1, -1),
    (Role.CALL, Kind.RECORD, "api", "record", 1, 250, 50, 2, -1),
    (Role.CALL, Kind.STREAM_WAIT, "api", "wait event", 1, 350, 50, 3, -1),
    (Role.CALL, Kind.OTHER, "api", "launch b", 1, 500, 100, 4, -1),
    (Role.CALL, Kind.WAIT_STREAM, "api", "wait stream", 1, 700, 2500, 5, -1),
    (Role.WORK, Kind.OTHER, "kernel", "a", 0, 300, 1000, 1, 7),
    (Role.WORK, Kind.OTHER, "kernel", "b", 0, 1310, 1700, 4, 9),
    (Role.SYNC, Kind.OTHER, "wait", "", 0, 350, 0, 3, 9),
    (Role.SYNC, Kind.OTHER, "wait", "", 0, 700, 2500, 5, 9),
)


def device() -> DeviceTrace:
    role, kind, category, name, tid, start, duration, correlation, stream = zip(
        *RECORDS, strict=True
    )
    categories, names = Pool[str](), Pool[str]()
    return DeviceTrace.of(
        PATH,
        len(RECORDS),
        Repairs(PATH),
        role=np.array(role, np.uint8),
        kind=np.array(kind, np.uint8),
        category=np.array([categories[text] for text in category], np.int32),
        categories=categories,
        name=np.array([names[text] for text in name], np.int32),
        names=names,
        tid=np.array(tid),
        start_ns=np.array(start),
        duration_ns=np.array(duration),
        correlation=np.array(correlation),
        stream=np.array(stream),
        device=np.where(np.array(role) == Role.WORK, 0, -1),
        totals=dict(Counter(category)),
        work_categories=frozenset({"kernel"}),
        waits=Waits(
            row=np.array([8, 9]),
            kind=np.array([Kind.STREAM_WAIT, Kind.WAIT_STREAM]),
            device=np.array([0, 0]),
            stream=np.array([9, 9]),
            awaited=np.array([7, -1]),
            recorded_by=np.array([2, -1]),
        ),
        collectives=Sparse([(7, Facts("all_reduce", 4096, "0", sources=["a plug-in"]))]),
        rank=3,
    )


def edges(linked: Linked) -> set[tuple[str, str, str]]:
    nodes = linked.trace.nodes
    rows = linked.trace.edges.target.tolist()
    sources = nodes.rows_of(linked.trace.edges.source).tolist()
    kinds = linked.trace.edges.kind.tolist()
    return {
        (EdgeKind(kind).label, nodes[source].name, nodes[row].name)
        for kind, source, row in zip(kinds, sources, rows, strict=True)
    }


def test_tables_alone_tell_launches_and_waits() -> None:
    found = edges(link(Recording(device=device())))
    assert ("launch", "launch a", "a") in found
    assert ("launch", "launch b", "b") in found
    assert ("event", "a", "b") in found
    assert ("sync", "b", "wait stream") in found


def test_facts_of_a_collective_are_those_of_the_table() -> None:
    trace = link(Recording(device=device())).trace
    (node,) = (node for node in trace.nodes if node.name == "b")
    assert node.type == NodeType.COMM_COLL
    assert node.attributes["comm_type"] == CollectiveType.ALL_REDUCE
    assert node.attributes["comm_size"] == 4096
    assert node.attributes["comm_facts"] == "a plug-in"
    assert trace.rank == 3


def test_every_record_is_kept_or_evidence() -> None:
    report = link(Recording(device=device())).report
    assert {name: (t.total, t.kept, t.left_out.total()) for name, t in report.records.items()} == {
        "range": (1, 1, 0),
        "api": (5, 5, 0),
        "kernel": (2, 2, 0),
        "wait": (2, 0, 2),
    }


@given(st.lists(st.booleans(), min_size=len(RECORDS), max_size=len(RECORDS)))
def test_a_selection_keeps_what_is_told_of_its_records(chosen: list[bool]) -> None:
    whole, mask = device(), np.array(chosen)
    part = whole.select(mask, "not wanted")
    names = whole.names.in_order
    assert [names[code] for code in part.name] == [
        record[3] for record, keep in zip(RECORDS, chosen, strict=True) if keep
    ]
    assert [int(part.correlation[row]) for row in part.waits.row] == [
        RECORDS[row][7] for row in (8, 9) if chosen[row]
    ]
    assert [names[part.name[row]] for row, _ in part.collectives.items()] == ["b"] * chosen[7]
    assert len(part) + part.left_out.total() == len(RECORDS)
