"""Without calls that make streams wait, the habits of process groups tell what they would have."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import chakra_et
from chakra_et import NodeType, Trace
from chakra_et.linker.output.explain import labels
from chakra_et.model import EdgeKind

Pair = tuple[tuple[str, int], tuple[str, int]]


def events(trace: Trace) -> tuple[set[Pair], set[Pair]]:
    """Event edges into and out of communication: names and starts of both nodes."""
    into, out = set(), set()
    nodes, edges = trace.nodes, trace.edges
    rows = edges.target.tolist()
    for place, row in enumerate(rows):
        if edges.kind[place] != EdgeKind.EVENT:
            continue
        source, target = trace.node(int(edges.source[place])), nodes[row]
        pair = (source.name, source.start_ns), (target.name, target.start_ns)
        if target.type == NodeType.COMM_COLL:
            into.add(pair)
        elif source.type == NodeType.COMM_COLL:
            out.add(pair)
    return into, out


@pytest.mark.parametrize(
    ("run", "into", "out"),
    [("dlrm8/device.0", 6, 2), ("torchrec4/device.0", 6, 5), ("resnet_rfid/device", 21, 0)],
)
def test_what_a_collective_waits_for(
    data: Path, tmp_path: Path, run: str, into: int, out: int
) -> None:
    """All edges that the calls show into collectives are found without them, and no other."""
    source = data / f"{run}.json.gz"
    profile = json.loads(gzip.decompress(source.read_bytes()))
    profile["traceEvents"] = [
        event for event in profile["traceEvents"] if "StreamWaitEvent" not in event.get("name", "")
    ]
    stripped = tmp_path / "device.json"
    stripped.write_text(json.dumps(profile))
    by_calls = events(chakra_et.convert(device=source).trace)
    trace = chakra_et.convert(device=stripped).trace
    by_habit = events(trace)
    assert by_habit[0] == by_calls[0]
    assert by_habit[1] <= by_calls[1]
    assert (len(by_habit[0]), len(by_habit[1])) == (into, out)
    event = trace.edges.kind == EdgeKind.EVENT
    assert trace.edges.inferred[event].all()
    habits = {"habit of process groups", "habit of process groups and times"}
    assert set(np.array(labels(trace), object)[event]) <= habits
