"""What each edge rests on: in the linker, in the report, in the file, and for a person."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from pathlib import Path

import pytest
from accounts import by_evidence, converted, real
from hypothesis import given
from hypothesis import strategies as st
from places import EXAMPLES, ROOT
from recordings import HostRecording, Profile
from truth.linked import keys, linked
from truth.machine import Key, Run, play
from truth.program import Program
from truth.programs import programs
from truth.rules import Rules

import chakra_et
from chakra_et.conversion import Conversion
from chakra_et.linker.evidence import Evidence
from chakra_et.linker.output.explain import labels
from chakra_et.model import EdgeKind, Trace, edge_evidence

LINKED = ROOT / "tests" / "converters" / "linked"


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
        ("data", "only tie between two streams"): 87,
    },
    "dlrm8": {
        ("thread", "sequence number"): 1,
        ("thread", "times"): 2,
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
    "torch213/ddp_2rank": {("thread", "record function id"): 12, ("thread", "times"): 4},
}
USUAL = {"id of the storage", "order of starts", "correlation id", "order in the group"}


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
