"""Linker and replay against truth by construction: programs run by a model machine."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from truth.files import write
from truth.linked import keys, linked, linked_ranks
from truth.machine import Key, Run, play
from truth.program import Op, Program, Statement, SyncDevice, SyncStream
from truth.programs import programs
from truth.rules import Edges, expected, slimmed

from chakra_et.conversion import convert
from chakra_et.linker import linking
from chakra_et.model import EdgeKind, Trace
from chakra_et.replay import move_after, replay

BASE_NS = 1_700_000_000_000_000_000
CHECKED = ("program", "launch", "stream", "event", "sync", "thread")


def edges(trace: Trace, run: Run) -> dict[str, set[tuple[Any, Any]]]:
    """The edges of a trace by kind, as pairs of the machine's activities."""
    named = keys(trace, run)
    found: dict[str, set[tuple[Any, Any]]] = {kind: set() for kind in CHECKED}
    rows = zip(trace.source_rows().tolist(), trace.edges.target.tolist(), trace.edges.kind.tolist(),
               strict=True)  # fmt: skip
    for source, target, kind in rows:
        found.setdefault(EdgeKind(kind).label, set()).add((named[source], named[target]))
    return found


def with_marks(trace: Trace, run: Run) -> Edges:
    """The data dependencies of a trace by kind, with the mark of inferred ones."""
    named = keys(trace, run)
    found: Edges = {kind: {} for kind in CHECKED}
    rows = zip(trace.source_rows().tolist(), trace.edges.target.tolist(), trace.edges.kind.tolist(),
               trace.edges.inferred.tolist(), strict=True)  # fmt: skip
    for source, target, kind, guessed in rows:
        if kind != EdgeKind.CALL:
            pair = named[source], named[target]
            found[EdgeKind(kind).label][pair] = guessed
    return found


def reached(trace: Trace) -> Any:
    """Which node is reached from which by data dependencies; nodes stand in an order of these."""
    count, source, target = len(trace.nodes), trace.source_rows(), trace.edges.target
    paths = np.eye(count, dtype=np.bool_)
    for edge in np.flatnonzero(trace.edges.kind != EdgeKind.CALL).tolist():
        paths[:, target[edge]] |= paths[:, source[edge]]
    return paths


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
def test_without_records_of_waits_the_documented_rules_hold(program: Program) -> None:
    (run,) = play(program)
    marked = with_marks(linked(run, records=False), run)
    for kind, pairs in slimmed(expected(run)).items():
        if kind == "thread":
            assert set(marked[kind]) == set(pairs)
        else:
            assert marked[kind] == pairs, kind


@given(programs())
def test_no_edge_is_written_that_others_imply(program: Program) -> None:
    (run,) = play(program)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linking, "redundant_edges", lambda t: np.zeros(len(t.edges), np.bool_))
        everything = linked(run, records=False)
    left = linked(run, records=False)
    assert with_marks(left, run) == slimmed(with_marks(everything, run))
    assert np.array_equal(reached(left), reached(everything))


@given(programs(), st.sampled_from([(True, False), (False, True), (True, True)]))
def test_flows_and_sequence_numbers_tell_of_hand_overs(
    program: Program, evidence: tuple[bool, bool]
) -> None:
    sequences, flows = evidence
    (run,) = play(program)
    with tempfile.TemporaryDirectory() as folder:
        pair = write(run, Path(folder), sequences=sequences, flows=flows)
        result = convert(*pair)
    found = with_marks(result.trace, run)["thread"]
    assert set(found) == run.edges.get("thread", set())
    backward = {a.key for a in run.activities if a.forward_thread}
    assert all(guessed == (target not in backward) for (_, target), guessed in found.items())
    joins = {j.by: j.matched for j in result.report.joins if j.what.startswith("waits of threads")}
    assert sum(joins.values()) == len(found)
    if found:
        assert joins["fwdbwd flow"] == (len(backward) if flows else 0)
        assert joins["sequence number"] == (0 if flows else len(backward))
    arrows = result.report.records.get("fwdbwd")
    assert (0 if arrows is None else arrows.total) == 2 * len(backward) * flows
    assert arrows is None or arrows.left_out.total() == arrows.total


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
