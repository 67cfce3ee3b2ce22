"""Data edges against truth by construction: programs whose machine knows who wrote what."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from truth.tensors import Machine, Step, programs, write

from chakra_et.conversion import Conversion, convert
from chakra_et.model import EdgeKind, Trace

Pairs = set[tuple[str, str]]


def linked(machine: Machine, *, alone: bool = False) -> Conversion:
    with tempfile.TemporaryDirectory() as folder:
        host, device = write(machine, Path(folder))
        return convert(host, None if alone else device)


def pairs(trace: Trace, *, data: bool) -> Pairs:
    """The nodes, by name, that data edges join, or edges of any kind but that of a call."""
    wanted = trace.edges.kind == EdgeKind.DATA if data else trace.edges.kind != EdgeKind.CALL
    source, target = trace.source_rows()[wanted], trace.edges.target[wanted]
    return {
        (trace.nodes[s].name, trace.nodes[t].name)
        for s, t in zip(source.tolist(), target.tolist(), strict=True)
    }


def between_streams(machine: Machine, edges: Pairs) -> Pairs:
    stream = {kernel.name: kernel.stream for kernel in machine.kernels.values()}
    return {(s, t) for s, t in edges if stream.get(s) != stream.get(t)}


def inferred(trace: Trace) -> Pairs:
    every = pairs(trace, data=True)
    certain = trace.edges.select((trace.edges.kind == EdgeKind.DATA) & ~trace.edges.inferred)
    return every - pairs(Trace(trace.nodes, certain, trace.metadata), data=True)


@given(programs(guards=False))
def test_who_reads_waits_for_who_wrote_and_for_nobody_else(steps: list[Step]) -> None:
    machine = Machine().run(steps)
    done = linked(machine)
    assert pairs(done.trace, data=True) <= machine.edges <= pairs(done.trace, data=False)
    assert not [warning for warning in done.report.warnings if "data edges" in warning]


@given(programs(guards=False))
def test_a_host_trace_alone_has_the_edges_of_its_operations(steps: list[Step]) -> None:
    machine = Machine().run(steps)
    trace = linked(machine, alone=True).trace
    assert pairs(trace, data=True) <= machine.operations <= pairs(trace, data=False)


@given(programs(guards=False))
def test_the_only_tie_between_streams_is_inferred(steps: list[Step]) -> None:
    machine = Machine().run(steps)
    assert inferred(linked(machine).trace) == between_streams(machine, machine.edges)


@given(programs(guards=True))
def test_what_records_of_waits_do_not_cover_is_left_out(steps: list[Step]) -> None:
    machine = Machine().run(steps)
    trace = linked(machine).trace
    missing = machine.edges - pairs(trace, data=False)
    assert pairs(trace, data=True) <= machine.edges
    if any(event["cat"] == "cuda_sync" for event in machine.profile.events):
        assert not inferred(trace)
        assert missing <= between_streams(machine, machine.edges)
    else:
        assert not missing


@given(programs(guards=True))
def test_edges_lead_forward_in_order_and_in_time(steps: list[Step]) -> None:
    trace = linked(Machine().run(steps)).trace
    source, target = trace.source_rows(), trace.edges.target
    assert np.all(source < target)
    data = trace.edges.kind == EdgeKind.DATA
    ends = trace.nodes.start_ns + trace.nodes.duration_ns
    device = trace.nodes.attributes.present("stream")
    both = data & device[source] & device[target]
    assert np.all(ends[source[both]] <= trace.nodes.start_ns[target[both]])
