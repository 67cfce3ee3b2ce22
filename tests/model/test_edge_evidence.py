"""The attribute that says what edges rest on: read, written, kept by passes, told to a person."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from accounts import by_evidence, real
from command import chakra_process as chakra
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES
from traces import node, run, trace

import chakra_et
from chakra_et.definitions import Kind
from chakra_et.linker.output.explain import explain, labels
from chakra_et.model import EdgeKind, Edges, Trace, edge_evidence
from chakra_et.passes import drop_metadata_nodes, order_collectives, renumber
from chakra_et.passes.edit import copied, without_nodes
from chakra_et.replay import move_after

GRAPH = "kineto/cudagraph_a100.json.gz"

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
    turned, edges = copied(linked_trace), linked_trace.edges
    # Backward, so that the edges of each node are in another order when the ids ascend again.
    turned.nodes.id = linked_trace.nodes.id[-1] + 1 - linked_trace.nodes.id
    source = linked_trace.nodes.id[-1] + 1 - edges.source
    order = Edges.in_rows(edges.target, source, edges.kind)
    columns = edges.target[order], source[order], edges.kind[order], edges.inferred[order]
    turned.edges = Edges.from_rows(len(turned.nodes), *columns)
    said = edge_evidence.entries(linked_trace)
    moved = {new: said[old] for new, old in enumerate(order.tolist()) if old in said}
    edge_evidence.set_entries(turned.nodes, turned.edges, moved)
    assert told_by_name(turned) == before
    result = renumber(run(turned))
    assert result.modified
    (changed,) = result.traces.values()
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
