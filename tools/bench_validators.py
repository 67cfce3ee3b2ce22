"""Time every rule of a profile on a trace of a million nodes.

The trace is made in memory: host operators and kernels on two threads and two streams, collectives
among them, three edges for each node, nine attributes. Prints seconds by rule, and their sum.

    python tools/bench_validators.py [--nodes N] [--profile NAME] [--shuffled [--untimed]]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from chakra_et.definitions import FORMAT_VERSION, CollectiveType, Kind, NodeType
from chakra_et.model import UNKNOWN_NS, EdgeKind, Edges, Metadata, Nodes, ProcessGroup, Trace
from chakra_et.validators import RULES, RunView, Subject, TraceView, profile


def make_trace(count: int, *, shuffled: bool = False, untimed: bool = False) -> Trace:
    """A sound trace of `count` nodes.

    `shuffled` gives order and ids that do not prove it free of cycles; `untimed` starts neither.
    """
    chance = np.random.default_rng(1)
    row = np.arange(count)
    types = np.full(count, NodeType.COMP, np.int32)
    types[row % 100 == 99] = NodeType.COMM_COLL
    on_host = (row % 3 != 0) & (types == NodeType.COMP)
    names = [f"operator {i}" for i in range(500)]
    nodes = Nodes(
        id=(row + 1).astype(np.uint64),
        type=types,
        name_code=chance.integers(0, len(names), count).astype(np.int32),
        names=names,
        start_ns=np.full(count, UNKNOWN_NS) if untimed else row * 1000,
        duration_ns=np.full(count, 900, np.int64),
    )
    table = nodes.attributes
    table.add("is_cpu_op", Kind.BOOL, on_host)
    host, device = np.flatnonzero(on_host), np.flatnonzero(~on_host)
    for name in ("thread", "tid", "rf_id", "host_id", "inclusive_ns", "exclusive_ns"):
        kind = Kind.UINT64 if name == "host_id" else Kind.INT64
        values = host % 2 + 1 if name in ("thread", "tid") else host + 1
        table.add(name, kind, values.astype(np.uint64) if name == "host_id" else values, host)
    table.add("op_schema", Kind.STRING, ["aten::mm(Tensor a) -> Tensor"] * len(host), host)
    table.add("stream", Kind.INT64, device % 2 + 7, device)
    table.add("device", Kind.INT64, np.zeros(len(device), np.int64), device)
    coll = np.flatnonzero(types == NodeType.COMM_COLL)
    all_reduce = np.full(len(coll), CollectiveType.ALL_REDUCE, np.int64)
    table.add("comm_type", Kind.INT64, all_reduce, coll)
    table.add("comm_size", Kind.INT64, np.full(len(coll), 1 << 20), coll)
    table.add("pg_name", Kind.STRING, ["0"] * len(coll), coll)
    trace = Trace(nodes, _edges(count), Metadata(FORMAT_VERSION))
    trace.metadata.set("rank", Kind.INT64, 0)
    trace.metadata.set("world_size", Kind.INT64, 2)
    trace.groups = [ProcessGroup(name="0", ranks=(0, 1), size=2)]
    return _shuffled(trace, chance) if shuffled else trace


def _edges(count: int) -> Edges:
    """Each node waits for the one before it and for two earlier ones."""
    target = np.repeat(np.arange(2, count), 3)
    back = np.tile([1, 2, 50], count - 2)
    source = np.maximum(target - back, 0)
    return Edges.collect(
        count,
        target,
        (source + 1).astype(np.uint64),
        np.full(len(target), EdgeKind.PROGRAM, np.uint8),
        np.zeros(len(target), np.bool_),
    )


def _shuffled(trace: Trace, chance: np.random.Generator) -> Trace:
    order = chance.permutation(len(trace.nodes))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    edges = trace.edges
    moved = Edges.collect(len(order), place[edges.target], edges.source, edges.kind, edges.inferred)
    nodes = trace.nodes.take(order)
    # Ids that prove nothing either.
    nodes.id = np.uint64(len(order) + 1) - nodes.id
    moved.source = np.uint64(len(order) + 1) - moved.source
    odd = nodes.id % np.uint64(2) == 1
    nodes.id[odd] += np.uint64(2 * len(order))
    moved.source[moved.source % np.uint64(2) == 1] += np.uint64(2 * len(order))
    return Trace(nodes, moved, trace.metadata)


def main() -> None:
    """Make the trace, run the rules one by one, print what each took."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--profile", default="core")
    parser.add_argument("--shuffled", action="store_true")
    parser.add_argument("--untimed", action="store_true")
    options = parser.parse_args()
    trace = make_trace(options.nodes, shuffled=options.shuffled, untimed=options.untimed)
    print(f"{trace}, profile {options.profile}")
    view = TraceView(trace)
    other = TraceView(trace, 1)
    run = RunView({0: view, 1: other})
    total = cpu = 0.0
    for rule_id in sorted(profile(options.profile).severities):
        rule = RULES[rule_id]
        if rule.subject not in (Subject.TRACE, Subject.RUN):
            continue
        began, began_cpu = time.perf_counter(), time.process_time()
        found = len(rule.check(run if rule.subject is Subject.RUN else view))
        took = time.perf_counter() - began
        total += took
        cpu += time.process_time() - began_cpu
        told = f"  {found} findings" if found else ""
        print(f"  {rule_id}  {took:7.3f} s  {rule.title}{told}")
    print(f"all rules: {total:.2f} s, of which {cpu:.2f} s on the processor")


if __name__ == "__main__":
    main()
