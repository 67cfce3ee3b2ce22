"""How many nodes per second does a replay run, and in how much memory?

    python tools/bench_replay.py [--nodes 1000000]

Makes a trace in memory: host threads that launch kernels on four streams, with a call that waits
for a stream every hundred kernels, so that targets are found while running. Prints, as JSON, CPU
time of the engine alone and of the whole replay (reading columns, running, figures, critical path,
timeline), nodes per second of both, and the growth of peak memory for each node.
"""

from __future__ import annotations

import argparse
import json
import resource
import time

import numpy as np

from chakra_et.definitions import Kind, NodeType
from chakra_et.io.memory import collection_paused
from chakra_et.model import AttributeTable, EdgeKind, Edges, Nodes, Trace
from chakra_et.replay import replay
from chakra_et.replay.columns import columns_of
from chakra_et.replay.planning import Planner
from chakra_et.replay.resolving import run_resolving
from chakra_et.replay.transfers import Transfers

STREAMS, EVERY = 4, 100


def make_trace(count: int) -> Trace:
    """Units of an operator, a launch (or a wait) and a kernel."""
    units = count // 3
    count = 3 * units
    rows = np.arange(units) * 3
    waits = np.arange(units) % EVERY == EVERY - 1
    op, call, kernel = rows, rows + 1, rows + 2
    stream = np.arange(units) // 10 % STREAMS
    rng = np.random.default_rng(0)
    duration = rng.integers(2_000, 20_000, count)
    host = np.stack((op, call), axis=1).ravel()
    start = np.zeros(count, np.int64)
    start[host] = np.concatenate(([0], np.cumsum(duration[host])[:-1]))
    start[kernel] = start[call] + duration[call]
    by_stream = [kernel[stream == s] for s in range(STREAMS)]
    edges = [
        (EdgeKind.PROGRAM, host[:-1], host[1:]),
        (EdgeKind.LAUNCH, call, kernel),
        (EdgeKind.SYNC, kernel[np.flatnonzero(waits) - 1], call[waits]),
        *((EdgeKind.STREAM, work[:-1], work[1:]) for work in by_stream),
    ]
    on_host = np.ones(count, np.bool_)
    on_host[kernel] = False
    attributes = AttributeTable(count)
    attributes.add("is_cpu_op", Kind.BOOL, on_host)
    attributes.add("device", Kind.INT64, np.zeros(units, np.int64), kernel)
    attributes.add("stream", Kind.INT64, stream, kernel)
    waited = stream[np.maximum(np.flatnonzero(waits) - 1, 0)]
    attributes.add("sync_on", Kind.STRING, [f"stream 0 {s}" for s in waited], call[waits])
    nodes = Nodes(
        id=np.arange(count, dtype=np.uint64),
        type=np.full(count, NodeType.COMP, np.int32),
        name_code=np.where(on_host, 0, 1).astype(np.int32),
        names=["host", "kernel"],
        start_ns=start,
        duration_ns=duration,
        attributes=attributes,
    )
    return Trace(
        nodes,
        Edges.collect(
            count,
            np.concatenate([t for _, _, t in edges]),
            np.concatenate([s for _, s, _ in edges]).astype(np.uint64),
            np.concatenate([np.full(len(s), kind, np.uint8) for kind, s, _ in edges]),
            np.zeros(sum(len(s) for _, s, _ in edges), np.bool_),
        ),
    )


def peak_bytes() -> int:
    """Peak memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1_000_000)
    trace = make_trace(parser.parse_args().nodes)
    count = len(trace.nodes)
    before = peak_bytes()
    columns = columns_of(trace)
    nothing = np.zeros(0, np.int64)
    planner = Planner([columns], [0], [])
    layout = planner.layout([columns.duration], Transfers(nothing, nothing))
    began = time.process_time()
    with collection_paused():
        times = run_resolving(layout.plan, layout.waiting)
    engine_s = time.process_time() - began
    assert times.done.all()
    del columns, planner, layout, times
    began = time.process_time()
    replay(trace)
    whole_s = time.process_time() - began
    figures = {
        "nodes": count,
        "edges": len(trace.edges),
        "engine_cpu_s": round(engine_s, 3),
        "engine_nodes_per_s": round(count / engine_s),
        "replay_cpu_s": round(whole_s, 3),
        "replay_nodes_per_s": round(count / whole_s),
        "bytes_per_node": round((peak_bytes() - before) / count),
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
