"""What each edge rests on: in the linker, in the report, in the file, and for a person."""

from __future__ import annotations

import re
from collections import Counter
from copy import copy
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from accounts import converted
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES, ROOT
from recordings import HostRecording, Profile
from test_errors import chakra
from test_truth import keys, linked
from traces import node, run, trace
from truth.machine import Key, Run, play
from truth.program import Program
from truth.programs import programs
from truth.rules import Rules

import chakra_et
from chakra_et.conversion import Conversion
from chakra_et.definitions import Kind
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.explain import explain, labels
from chakra_et.model import EdgeKind, Trace, edge_evidence
from chakra_et.passes import drop_metadata_nodes, order_collectives, renumber
from chakra_et.passes.edit import copied, without_nodes
from chakra_et.replay import move_after

LINKED = Path(__file__).parent / "linked"


def by_evidence(trace: Trace) -> Counter[tuple[str, str | None]]:
    """How many edges of which kind rest on what, by all that the trace says."""
    kinds = [EdgeKind(kind).label for kind in trace.edges.kind.tolist()]
    return Counter(zip(kinds, labels(trace), strict=True))


def reported(result: Conversion) -> Counter[tuple[str, str | None]]:
    """The same by the report."""
    return Counter(
        {
            (kind, entry["by"]): entry["count"]
            for kind, told in result.report.as_dict()["edges"].items()
            for entry in told["evidence"]
        }
    )


def reread(result: Conversion, folder: Path) -> Trace:
    chakra_et.write(result.trace, folder / "trace.et")
    return chakra_et.read(folder / "trace.et")


# ---------------------------------------------------------------------------------------------
# The table


def test_evidences_of_a_kind_stand_together_guesses_last() -> None:
    assert len([kind for kind, _ in groupby(e.kind for e in Evidence)]) == len(EdgeKind)
    for kind in EdgeKind:
        mine = [e for e in Evidence if e.kind is kind]
        assert [e.guess for e in mine] == sorted(e.guess for e in mine)
        assert len({e.label for e in mine}) == len(mine)


def test_labels_can_stand_in_a_list() -> None:
    assert all(e.label and "," not in e.label for e in Evidence)


def test_the_documentation_has_the_table() -> None:
    text = (ROOT / "docs" / "edges.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| .+? \| (yes|no) \|$", text, re.MULTILINE)
    assert rows == [(e.kind.label, e.label, "yes" if e.guess else "no") for e in Evidence]


# ---------------------------------------------------------------------------------------------
# Real files

A100 = "kineto/cuda_sync_a100.json.gz"
GRAPH = "kineto/cudagraph_a100.json.gz"
MI250 = "kineto/train_mi250.json.gz"
REAL = {
    "resnet_rfid": {
        ("thread", "fwdbwd flow"): 3,
        ("event", "call that makes the stream wait"): 9,
        ("sync", "call for the whole device"): 2,
        ("data", "only tie between two streams"): 63,
    },
    "dlrm8": {
        ("thread", "sequence number"): 1,
        ("thread", "times"): 1,
        ("event", "call that makes the stream wait"): 3,
        ("event", "call that makes some stream wait and times"): 1,
        ("sync", "call for the whole device"): 4,
        ("sync", "blocking copy"): 2,
        ("sync", "end during the call"): 8,
        ("data", "only tie between two streams"): 1,
    },
    A100: {
        ("event", "record of the wait without the event's call"): 6,
        ("sync", "record of the wait"): 25,
    },
    GRAPH: {
        ("event", "times inside a graph"): 154,
        ("sync", "call for the whole device"): 2,
        ("sync", "blocking copy"): 9,
        ("sync", "end during the call"): 42,
    },
    MI250: {
        ("thread", "fwdbwd flow"): 1,
        ("thread", "times"): 1,
        ("sync", "call for the whole device"): 1,
        ("sync", "blocking copy"): 2,
    },
    "torch213/ddp_2rank": {("thread", "times"): 16},
}
USUAL = {"id of the storage", "order of starts", "correlation id", "order in the group"}


def real(data: Path, name: str) -> Conversion:
    place = data / name
    if place.is_file():
        return converted(None, place)
    rank = "" if (place / "host.json.gz").is_file() else ".0"
    return converted(place / f"host{rank}.json.gz", place / f"device{rank}.json.gz")


@pytest.mark.parametrize("name", REAL)
def test_real_edges_rest_on_what_their_files_hold(data: Path, name: str) -> None:
    found = reported(real(data, name))
    told = {at: count for at, count in found.items() if at[0] != "call" and at[1] not in USUAL}
    assert told == REAL[name]


@pytest.mark.parametrize("name", [*REAL, "torch213/tp_2rank"])
def test_the_file_says_of_every_edge_what_the_report_counts(
    data: Path, tmp_path: Path, name: str
) -> None:
    result = real(data, name)
    assert by_evidence(reread(result, tmp_path)) == reported(result)


@pytest.mark.parametrize("name", ["resnet_rfid", GRAPH])
def test_the_attribute_makes_files_less_than_a_hundredth_longer(
    data: Path, tmp_path: Path, name: str
) -> None:
    trace = real(data, name).trace
    for file in ("with.et", "without.et"):
        chakra_et.write(trace, tmp_path / file)
        edge_evidence.set_entries(trace.nodes, trace.edges, {})
    longer, shorter = ((tmp_path / f).stat().st_size for f in ("with.et", "without.et"))
    assert shorter < longer < 1.01 * shorter


def test_a_host_trace_alone_is_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    result = converted(EXAMPLES / "simple_add" / "host.json.gz")
    found = by_evidence(reread(result, tmp_path))
    assert found == reported(result)
    assert {at for at in found if at[0] != "data"} == {
        ("call", "parent in the host trace"),
        ("program", "order of numbers in the host trace"),
    }


def test_callers_are_told_by_the_host_trace_by_launches_by_nesting_or_by_ids(
    tmp_path: Path,
) -> None:
    host = HostRecording().op(3, "aten::mm", rf_id=1)
    profile = Profile().op("step", 0, 100, rf_id=8).op("aten::mm", 10, 20, rf_id=1)
    profile.call("cudaLaunchKernel", 15, 5, 7).kernel("gemm", 25, 30, 7)
    profile.kernel("orphan", 60, 10, 9, **{"External id": 4})
    profile.op("named", 40, 10, rf_id=9, **{"External id": 4})
    files = host.write(tmp_path / "host.json"), profile.write(tmp_path / "device.json")
    result = converted(*files)
    trace = reread(result, tmp_path)
    assert by_evidence(trace) == reported(result)
    found = {
        trace.nodes[row].name: label
        for row, kind, label in zip(
            trace.edges.target.tolist(), trace.edges.kind.tolist(), labels(trace), strict=True
        )
        if kind == EdgeKind.CALL
    }
    assert found["aten::mm"] == "nesting in time"  # its parent is no operation of the profile
    assert found["cudaLaunchKernel"] == "nesting in time"
    assert found["gemm"] == "caller of the launch"
    assert found["orphan"] == "External id or record-function id"


def test_a_linked_trace_tells_its_own_ties(tmp_path: Path) -> None:
    result = converted(LINKED / "waits.json")
    trace = reread(result, tmp_path)
    assert by_evidence(trace) == reported(result)
    told = {at for at in reported(result) if at[1] == "the file itself"}
    assert told == {("call", "the file itself"), ("sync", "the file itself")}


# ---------------------------------------------------------------------------------------------
# Truth by construction


def told_of(trace: Trace, run: Run, kind: EdgeKind) -> dict[tuple[Key | None, Key | None], str]:
    """What the edges of a kind rest on, by the machine's activities at their ends."""
    named = keys(trace, run)
    rows = zip(trace.source_rows().tolist(), trace.edges.target.tolist(),
               trace.edges.kind.tolist(), labels(trace), strict=True)  # fmt: skip
    return {(named[s], named[t]): label or "" for s, t, k, label in rows if k == kind}


@given(programs(), st.booleans())
def test_waits_of_the_host_rest_on_records_or_on_what_calls_are(
    program: Program, records: bool
) -> None:
    (run,) = play(program)
    host = {a.key: a for a in run.activities if a.key[0] != "work"}
    ends = {a.key: a.end for a in run.activities}
    for (source, target), label in told_of(
        linked(run, records=records), run, EdgeKind.SYNC
    ).items():
        assert source is not None
        assert target is not None
        call = host[target]
        if not call.name.endswith("Synchronize"):
            assert label == "blocking copy"
        elif label != "blocking copy":
            times = ends[source] > call.start
            guess = "end during the call" if times else "stream that the thread used last"
            without = "call for the whole device" if "Device" in call.name else guess
            assert label == ("record of the wait" if records else without)


@given(programs(), st.booleans())
def test_waits_of_streams_rest_on_records_or_on_calls(program: Program, records: bool) -> None:
    (run,) = play(program)
    rules = Rules(run)
    work = {w.key: w for w in rules.launches}
    for (_, target), label in told_of(linked(run, records=records), run, EdgeKind.EVENT).items():
        assert target is not None
        call = rules.launch(work[target])
        since = max((rules.launch(w).start for w in rules.launches
                     if rules.launch(w).lane == call.lane and rules.launch(w).start < call.start),
                    default=-1)  # fmt: skip
        asked = rules.on_thread(call.lane, "cudaStreamWaitEvent")
        if records:
            assert label == "record of the wait with the event's call"
        elif any(since <= wait.start < call.start for wait in asked):
            assert label == "call that makes the stream wait"
        else:
            assert label == "call that makes some stream wait and times"


@given(programs(), st.sampled_from([(True, False), (False, True), (False, False)]))
def test_threads_are_handed_over_by_flow_by_number_or_by_times(
    program: Program, evidence: tuple[bool, bool]
) -> None:
    sequences, flows = evidence
    (run,) = play(program)
    backward = {a.key for a in run.activities if a.forward_thread}
    named = "fwdbwd flow" if flows else "sequence number" if sequences else "times"
    found = told_of(linked(run, sequences=sequences, flows=flows), run, EdgeKind.THREAD)
    for (_, target), label in found.items():
        assert label == (named if target in backward else "times")


# ---------------------------------------------------------------------------------------------
# The attribute


@given(st.data())
def test_what_is_set_is_what_is_read(drawn: st.DataObject) -> None:
    counts = drawn.draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))
    given_trace = trace(*(node(i + 1, deps=tuple(range(9, 9 + n))) for i, n in enumerate(counts)))
    places = st.integers(0, max(sum(counts) - 1, 0))
    words = st.text(st.characters(exclude_characters=",", exclude_categories=["Cs"]), min_size=1)
    said = drawn.draw(st.dictionaries(places, words)) if sum(counts) else {}
    edge_evidence.set_entries(given_trace.nodes, given_trace.edges, said)
    assert edge_evidence.entries(given_trace) == said
    assert len(edge_evidence.misfits(given_trace)) == 0
    edge_evidence.set_entries(given_trace.nodes, given_trace.edges, {})
    assert given_trace.nodes.attributes.named("edge_evidence") == []


def test_a_text_of_another_number_of_entries_says_nothing() -> None:
    given_trace = trace(node(1), node(2, deps=(1,), edge_evidence="times,times"))
    assert edge_evidence.entries(given_trace) == {}
    assert edge_evidence.misfits(given_trace).tolist() == [1]
    (hit,) = chakra_et.validate(given_trace, "core").outcomes
    assert (hit.rule.id, hit.findings[0].evidence) == (
        "ET216",
        "edge_evidence does not fit the node",
    )


def test_nothing_is_told_of_edges_of_other_tools() -> None:
    assert labels(trace(node(1), node(2, deps=(1,), kind=EdgeKind.LAUNCH))) == [None]


# ---------------------------------------------------------------------------------------------
# Passes keep it


def edges_in_order(trace: Trace) -> np.ndarray:  # type: ignore[type-arg]
    """The starts of the nodes that edges come from."""
    starts: np.ndarray = trace.nodes.start_ns[trace.source_rows()]  # type: ignore[type-arg]
    return starts


def told_by_name(trace: Trace) -> dict[tuple[str, int | None, str, int | None, int], str | None]:
    """What edges rest on by the names and starts of their ends, and their kind."""
    ends = [(n.name, n.start_ns) for n in trace.nodes]
    rows = zip(trace.source_rows().tolist(), trace.edges.target.tolist(),
               trace.edges.kind.tolist(), labels(trace), strict=True)  # fmt: skip
    return {(*ends[s], *ends[t], kind): label for s, t, kind, label in rows}


def test_it_follows_the_edges_when_nodes_get_other_numbers(data: Path) -> None:
    linked_trace = real(data, GRAPH).trace
    before = told_by_name(linked_trace)
    assert "times inside a graph" in before.values()
    turned = copied(linked_trace)
    # Backward, so that the edges of each node are in another order when the ids ascend again.
    turned.nodes.id = turned.nodes.id[-1] + 1 - turned.nodes.id
    turned.edges = copy(turned.edges)
    turned.edges.source = turned.nodes.id.max() + 1 - turned.edges.source
    assert told_by_name(turned) == before
    result = renumber(run(turned))
    assert result.modified
    (changed,) = result.traces.values()
    assert not np.array_equal(edges_in_order(changed), edges_in_order(turned))
    assert told_by_name(changed) == before


def test_it_goes_with_a_node_and_stays_with_the_others(data: Path) -> None:
    given_trace = real(data, GRAPH).trace
    before = told_by_name(given_trace)
    dropped = np.zeros(len(given_trace.nodes), np.bool_)
    dropped[np.flatnonzero(given_trace.nodes.attributes.present("edge_evidence"))[::3]] = True
    left = without_nodes(given_trace, dropped)
    after = told_by_name(left)
    assert len(edge_evidence.misfits(left)) == 0
    same = after.keys() & before.keys()
    assert len(same) > 0.7 * len(before)
    assert {at: after[at] for at in same} == {at: before[at] for at in same}


def test_an_edge_that_a_pass_adds_rests_on_nothing_told() -> None:
    def rank(first: str, second: str) -> Trace:
        made = trace(node(1), *(
            node(i, 7, deps=(1,), comm_type=0, comm_size=4, pg_name=name, is_cpu_op=False,
                 edge_evidence="some guess")
            for i, name in ((2, first), (3, second))))  # fmt: skip
        made.metadata.set("producer", Kind.STRING, "chakra-et")
        return made

    traces = run(rank("5", "6"), rank("6", "5"))
    for made, number in zip(traces.values(), (0, 1), strict=True):
        made.metadata.set("rank", Kind.INT64, number)
    result = order_collectives(traces)
    assert result.modified
    found = Counter(label for made in result.traces.values() for label in labels(made))
    assert found == {"some guess": 4, None: 2}


def test_a_call_that_is_moved_tells_nothing_that_is_no_longer_so(data: Path) -> None:
    given_trace = real(data, GRAPH).trace
    table = given_trace.nodes.attributes
    calls = np.flatnonzero(table.present("sync_on") & table.present("edge_evidence"))
    row = int(calls[len(calls) // 2])
    other = int(calls[0])
    changed = move_after(
        given_trace, int(given_trace.nodes.id[row]), int(given_trace.nodes.id[other])
    )
    assert changed.nodes.attributes.get(row, "edge_evidence") is None
    assert len(edge_evidence.misfits(changed)) == 0
    left = changed.nodes.attributes.present("edge_evidence").sum()
    assert table.present("edge_evidence").sum() - 4 <= left < table.present("edge_evidence").sum()


def test_a_trace_without_metadata_nodes_keeps_it(data: Path) -> None:
    result = real(data, "resnet_rfid")
    before = by_evidence(result.trace)
    (changed,) = drop_metadata_nodes(run(result.trace)).traces.values()
    after = by_evidence(changed)
    for at in (("data", "only tie between two streams"), ("thread", "fwdbwd flow")):
        assert after[at] == before[at] > 0


# ---------------------------------------------------------------------------------------------
# For a person


def test_a_node_is_explained(tmp_path: Path) -> None:
    pair = EXAMPLES / "simple_add"
    result = chakra_et.convert(pair / "host.json.gz", pair / "device.json.gz", tmp_path / "t.et")
    kernel = next(iter(result.trace.nodes.where(category="kernel")))
    told = " ".join(chakra("info", tmp_path / "t.et", "--node", kernel.id).stdout.split())
    assert told.startswith(f"{kernel.id} COMP {kernel.name[:20]}")
    assert f"start_ns {kernel.start_ns} duration_ns {kernel.duration_ns}" in told
    assert "stream 7" in told
    (call,) = (s for s, kind, _ in kernel.edges if kind is EdgeKind.LAUNCH)
    assert f"waits for {call} cudaLaunchKernel (launch: correlation id)" in told
    assert "called by" in told
    assert "(call: caller of the launch)" in told


def test_a_guess_is_told_as_one(data: Path) -> None:
    trace = real(data, GRAPH).trace
    row = int(trace.edges.target[labels(trace).index("times inside a graph")])
    (event,) = (edge for edge in explain(trace, row) if edge.kind is EdgeKind.EVENT)
    assert (event.inferred, event.evidence) == (True, "times inside a graph")


def test_nodes_are_explained_of_ets_that_have_them(tmp_path: Path) -> None:
    pair = EXAMPLES / "simple_add"
    done = chakra("info", pair / "host.json.gz", "--node", 1)
    assert done.returncode != 0
    assert "which has no nodes to show" in done.stderr
    chakra_et.write(trace(node(4), node(6, deps=(4, 9))), tmp_path / "t.et")
    done = chakra("info", tmp_path / "t.et", "--node", 5)
    assert done.returncode != 0
    assert "no node has the id 5. Ids go from 4 to 6." in " ".join(done.stderr.split())
    told = " ".join(chakra("info", tmp_path / "t.et", "--node", 6).stdout.split())
    assert "waits for 4 node 4 (data: the file does not say by what)" in told
    assert "waits for 9 (no node has this id) (data: the file does not say by what)" in told
