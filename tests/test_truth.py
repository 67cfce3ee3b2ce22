"""Linker and replay against truth by construction: programs run by a model machine."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from truth.files import play_and_write, write
from truth.machine import Key, Run, play
from truth.program import Op, Program, Statement, SyncDevice, SyncStream
from truth.programs import programs

from chakra_et.conversion import convert
from chakra_et.model import EdgeKind, Trace, TraceSet
from chakra_et.replay import move_after, replay

BASE_NS = 1_700_000_000_000_000_000
CHECKED = ("program", "launch", "stream", "event", "sync", "thread")


def linked(run: Run, **options: Any) -> Trace:
    with tempfile.TemporaryDirectory() as folder:
        host, device = write(run, Path(folder), **options)
        return convert(host, device).trace


def linked_ranks(program: Program, runs: list[Run]) -> TraceSet:
    with tempfile.TemporaryDirectory() as folder:
        files = play_and_write(program, runs, Path(folder))
        return TraceSet({r: convert(*pair).trace for r, pair in enumerate(files)})


def keys(trace: Trace, run: Run) -> list[Key | None]:
    """Which activity of the machine each node is."""
    works = {(a.correlation, a.start): a.key for a in run.activities if a.key[0] == "work"}
    column = trace.nodes.attributes.dense
    rows = zip(
        column("stream", -1, np.int64).tolist(),
        column("correlation", 0, np.int64).tolist(),
        column("rf_id", 0, np.int64).tolist(),
        trace.nodes.start_ns.tolist(),
        strict=True,
    )
    found: list[Key | None] = []
    for stream, correlation, rf_id, start in rows:
        if stream >= 0:
            found.append(works[correlation, start - BASE_NS])
        else:
            found.append(("call", correlation) if correlation else ("op", rf_id) if rf_id else None)
    return found


def edges(trace: Trace, run: Run) -> dict[str, set[tuple[Any, Any]]]:
    """The edges of a trace by kind, as pairs of the machine's activities."""
    named = keys(trace, run)
    found: dict[str, set[tuple[Any, Any]]] = {kind: set() for kind in CHECKED}
    rows = zip(trace.source_rows().tolist(), trace.edges.target.tolist(), trace.edges.kind.tolist(),
               strict=True)  # fmt: skip
    for source, target, kind in rows:
        found.setdefault(EdgeKind(kind).label, set()).add((named[source], named[target]))
    return found


def starts(trace: Trace, run: Run) -> dict[Key | None, int]:
    """When device work starts, by activity."""
    device = trace.nodes.attributes.present("stream").tolist()
    named = zip(keys(trace, run), trace.nodes.start_ns.tolist(), device, strict=True)
    return {key: start for key, start, works in named if works}


def true_edges(run: Run) -> dict[str, set[tuple[Any, Any]]]:
    """Of several reasons for one wait the file keeps the first: sync, event before order."""
    return {kind: run.edges.get(kind, set()) for kind in CHECKED}


@given(programs())
def test_every_edge_is_found_and_no_other(program: Program) -> None:
    (run,) = play(program)
    found, true = edges(linked(run), run), true_edges(run)
    for kind in CHECKED:
        assert found[kind] == true[kind], kind


@given(programs())
def test_the_replay_is_the_recording(program: Program) -> None:
    (run,) = play(program)
    trace = linked(run)
    done = replay(trace)
    assert done.figures[0].span_ns == run.span
    assert done.figures[0].span_error == 0
    device = trace.nodes.attributes.present("stream")
    assert np.array_equal(done.trace.nodes.start_ns[device], trace.nodes.start_ns[device])


@given(programs())
def test_faster_kernels_give_the_span_of_the_machine(program: Program) -> None:
    (run,) = play(program)
    for factor in (0.5, 0.0, 3.0):
        (changed,) = play(program, lambda name, by=factor: by if name == "gemm" else 1.0)
        done = replay(linked(run), scale=[("name~^gemm", factor)])
        assert done.figures[0].span_ns == changed.span


@given(programs(ranks=3))
def test_ranks_meet_in_collectives(program: Program) -> None:
    runs = play(program)
    traces = linked_ranks(program, runs)
    done = replay(traces)
    assert not {r for r in done.unmatched if not r.startswith("clocks")}
    assert [f.span_ns for f in done.figures.values()] == [run.span for run in runs]


@given(programs(ranks=2))
def test_a_change_on_all_ranks_gives_the_spans_of_the_machine(program: Program) -> None:
    runs = play(program)
    changed = play(program, lambda name: 0.5 if name == "gemm" else 1.0)
    done = replay(linked_ranks(program, runs), scale=[("name~^gemm", 0.5)])
    assert [f.span_ns for f in done.figures.values()] == [run.span for run in changed]


@given(programs())
def test_without_records_of_waits_nothing_contradicts_the_times(program: Program) -> None:
    (run,) = play(program)
    trace = linked(run, records=False)
    found, true = edges(trace, run), true_edges(run)
    for kind in ("launch", "stream", "thread"):
        assert found[kind] == true[kind], kind
    ends = {a.key: a.end for a in run.activities}
    begins = {a.key: a.start for a in run.activities}
    assert all(ends[source] <= begins[target] for source, target in found["event"])
    assert all(ends[source] <= ends[target] for source, target in found["sync"])


@st.composite
def moves(draw: st.DrawFn) -> tuple[Program, Program, int, int]:
    """A program, the same with one synchronisation moved, and which activity went behind which.

    Numbers count the main thread's activities.
    """
    steps = [s for s in draw(programs(bare=False)).ranks[0] if type(s).__name__ != "Backward"]
    sync = draw(
        st.builds(SyncStream, st.sampled_from([7, 20, 24]), st.integers(1, 9000))
        | st.builds(SyncDevice, st.integers(1, 9000))
    )
    # Not behind a copy: what it takes to return would be lost in the wait.
    places = [i for i, s in enumerate(steps) if isinstance(s, Op)]
    old, new = draw(st.sampled_from(places)), draw(st.sampled_from(places))
    before: list[Statement] = [*steps[: old + 1], sync, *steps[old + 1 :]]
    after: list[Statement] = [*steps[: new + 1], sync, *steps[new + 1 :]]
    anchor = new if new <= old else new + 1
    return Program([before]), Program([after]), old + 1, anchor


@given(moves())
def test_a_moved_synchronisation_gives_the_span_of_the_machine(
    case: tuple[Program, Program, int, int],
) -> None:
    before, after, moved, anchor = case
    (run,), (changed,) = play(before), play(after)
    host = [a.key for a in run.activities if a.key[0] != "work"]
    trace = linked(run)
    ids = dict(zip(keys(trace, run), trace.nodes.id.tolist(), strict=True))
    edited = move_after(trace, ids[host[moved]], ids[host[anchor]])
    assert replay(edited).figures[0].span_ns == changed.span
