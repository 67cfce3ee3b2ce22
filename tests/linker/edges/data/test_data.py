"""Data edges: small pairs with known values, and what they are in real traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import HostRecording, Profile

import chakra_et
from chakra_et import Conversion, EdgeKind
from chakra_et.graph import last_awaited
from chakra_et.linker.edges.data.edges import PARTS
from chakra_et.model import Trace
from chakra_et.recording.operators import PYTHON
from chakra_et.replay import replay

NEW = "aten::relu(Tensor self) -> Tensor"
ADD_ = "aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)"
COPY_ = "aten::copy_(Tensor(a!) self, Tensor src, bool b=False) -> Tensor(a!)"
EMPTY = "aten::empty.memory_format(SymInt[] size) -> Tensor"
ADDMM = "aten::addmm(Tensor self, Tensor mat1, Tensor mat2) -> Tensor"
VIEW = "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)"
ALLREDUCE = "c10d::allreduce_(Tensor[] tensors, int t) -> (Tensor[], Work)"


def tensor(number: int, begin: int = 0, count: int = 8, device: str = "cpu") -> list[Any]:
    """A tensor of storage `number`; its own id is another."""
    return [number + 1000, number, begin, count, 4, device]


class Run:
    """Operations one after the other; those with a `stream` launch a kernel of their name."""

    def __init__(self) -> None:
        self.host, self.profile = HostRecording(), Profile()
        self.number, self.now = 2, 0

    def op(
        self,
        name: str,
        schema: str,
        taken: list[Any],
        given: list[Any],
        *,
        stream: int | None = None,
        parent: int = 2,
        tid: int = 1,
        **attrs: Any,
    ) -> Run:
        self.number, self.now = self.number + 1, self.now + 100
        nothing: list[Any] = []
        self.host.op(self.number, name, rf_id=self.number, parent=parent, schema=schema, tid=tid,
                     inputs=(taken, nothing, nothing), outputs=(given, nothing, nothing),
                     **attrs)  # fmt: skip
        self.profile.op(name, self.now, 50, rf_id=self.number, tid=4000 + tid)
        if stream is not None:
            self.profile.call("cudaLaunchKernel", self.now + 10, 5, self.number, tid=4000 + tid)
            self.profile.kernel(f"{name} kernel", self.now + 20, 10, self.number, stream=stream)
        return self

    def convert(self, folder: Path, *, alone: bool = False) -> Conversion:
        host = self.host.write(folder / "host.json")
        return chakra_et.convert(host, None if alone else self.profile.write(folder / "d.json"))


def data(trace: Trace) -> set[tuple[str, str, bool]]:
    """Names of both ends of each data edge, and whether it is inferred."""
    source, target = trace.source_rows(), trace.edges.target
    return {
        (trace.nodes[int(source[e])].name, trace.nodes[int(target[e])].name,
         bool(trace.edges.inferred[e]))
        for e in np.flatnonzero(trace.edges.kind == EdgeKind.DATA)
    }  # fmt: skip


def test_the_last_writer_is_waited_for_not_the_one_before(tmp_path: Path) -> None:
    run = (
        Run().op("make", NEW, [], [tensor(5)]).op("add", ADD_, [tensor(5), tensor(6)], [tensor(5)])
    )
    run.op("other", NEW, [], [tensor(9)]).op("use", NEW, [tensor(5)], [tensor(7)])
    assert data(run.convert(tmp_path).trace) == {("add", "use", False)}


def test_only_the_bytes_that_are_read_count(tmp_path: Path) -> None:
    run = Run().op("make", NEW, [], [tensor(5)]).op("other", NEW, [], [tensor(6)])
    run.op("low", COPY_, [tensor(5, 0, 4), tensor(8)], [tensor(5, 0, 4)])
    run.op("other", NEW, [], [tensor(6)]).op("high", NEW, [tensor(5, 4, 4)], [tensor(7)])
    run.op("other", NEW, [], [tensor(6)]).op("all", NEW, [tensor(5)], [tensor(9)])
    assert data(run.convert(tmp_path).trace) == {
        ("make", "high", False), ("make", "all", False), ("low", "all", False)}  # fmt: skip


def test_a_view_writes_nothing(tmp_path: Path) -> None:
    run = Run().op("make", NEW, [], [tensor(5)]).op("view", VIEW, [tensor(5)], [tensor(5)])
    run.op("use", NEW, [tensor(5)], [tensor(7)])
    assert data(run.convert(tmp_path).trace) == {("make", "use", False)}


def test_an_id_that_is_handed_out_anew_ends_what_was_known(tmp_path: Path) -> None:
    run = Run().op("old", NEW, [], [tensor(5)]).op("empty", EMPTY, [[8]], [tensor(5)])
    run.op("use", NEW, [tensor(5)], [tensor(7)])
    assert data(run.convert(tmp_path).trace) == set()


def test_an_id_on_two_devices_is_two_memories(tmp_path: Path) -> None:
    run = Run().op("old", NEW, [], [tensor(5)]).op("other", NEW, [], [tensor(6)])
    run.op("use", NEW, [tensor(5, device="cuda:0")], [tensor(7)])
    assert data(run.convert(tmp_path, alone=True).trace) == set()


def test_an_id_that_no_record_hands_out_anew_cannot_be_told_from_the_old_one(
    tmp_path: Path,
) -> None:
    run = Run().op("old", NEW, [], [tensor(5)]).op("from_numpy, unrecorded", "", [], [])
    run.op("use", NEW, [tensor(5)], [tensor(7)])
    assert data(run.convert(tmp_path).trace) == {("old", "use", False)}


def test_an_operation_that_works_itself_writes_after_what_it_calls(tmp_path: Path) -> None:
    run = Run().op("addmm", ADDMM, [tensor(1), tensor(2), tensor(3)], [tensor(5)])
    run.op("copy", COPY_, [tensor(5), tensor(1)], [tensor(5)], parent=3)
    run.op("other", NEW, [], [tensor(6)]).op("use", NEW, [tensor(5)], [tensor(7)])
    run.profile.events[0]["dur"] = 180
    assert data(run.convert(tmp_path).trace) == {("addmm", "use", False)}


def test_a_wrapper_leaves_it_to_what_it_calls(tmp_path: Path) -> None:
    run = Run().op("make", NEW, [], [tensor(4)]).op("outer", NEW, [tensor(4)], [tensor(5)])
    run.op("inner", NEW, [tensor(4)], [tensor(5)], parent=4).op("other", NEW, [], [tensor(6)])
    run.op("use", NEW, [tensor(5)], [tensor(7)])
    run.profile.events[1]["dur"] = 180
    assert data(run.convert(tmp_path).trace) == {("make", "inner", False), ("inner", "use", False)}


def test_operators_on_tensors_without_memory_of_their_own_leave_it_to_what_python_calls(
    tmp_path: Path,
) -> None:
    """DTensors all have the id of no memory (1 here); those of their parts tell who reads what."""
    run = Run().op("wrapped", NEW, [tensor(1)], [tensor(1)]).op(PYTHON, "", [], [], parent=3)
    run.op("make", NEW, [tensor(5)], [tensor(6)], parent=4)
    run.op("around", NEW, [tensor(1)], [tensor(1)])
    run.op("wrapped", ADD_, [tensor(1), tensor(1)], [tensor(1)], parent=6)
    run.op(PYTHON, "", [], [], parent=7).op("add", ADD_, [tensor(7), tensor(8)], [], parent=8)
    run.op("around", NEW, [tensor(1)], [tensor(1)]).op("wrapped", NEW, [tensor(1)], [], parent=10)
    run.op(PYTHON, "", [], [], parent=11).op("use", NEW, [tensor(6)], [tensor(9)], parent=12)
    assert data(run.convert(tmp_path, alone=True).trace) == {("make", "use", False)}


def test_memory_of_a_device_joins_its_work_and_a_tie_between_streams_is_inferred(
    tmp_path: Path,
) -> None:
    on = {"device": "cuda:0"}
    run = Run().op("make", NEW, [], [tensor(5, **on)], stream=7)
    run.op("between", NEW, [], [tensor(6, **on)], stream=7)
    run.op("view", VIEW, [tensor(5, **on)], [tensor(5, **on)])
    run.op("same", NEW, [tensor(5, **on)], [tensor(8, **on)], stream=7)
    run.op("far", NEW, [tensor(5, **on)], [tensor(9, **on)], stream=20)
    result = run.convert(tmp_path)
    assert data(result.trace) == {
        ("make kernel", "same kernel", False), ("make kernel", "far kernel", True)}  # fmt: skip
    assert result.report.as_dict()["edges"]["data"] == {
        "count": 2,
        "inferred": 1,
        "evidence": [
            {"by": "id of the storage", "count": 1},
            {"by": "only tie between two streams", "count": 1},
        ],
    }
    assert data(run.convert(tmp_path, alone=True).trace) == {
        ("make", "same", False), ("make", "far", False)}  # fmt: skip


def test_a_write_without_work_in_the_profile_ends_what_was_known(tmp_path: Path) -> None:
    on = {"device": "cuda:0"}
    run = Run().op("make", NEW, [], [tensor(5, **on)], stream=7)
    run.op("add", ADD_, [tensor(5, **on), tensor(6, **on)], [tensor(5, **on)])
    run.op("other", NEW, [], [tensor(8, **on)], stream=7)
    run.op("use", NEW, [tensor(5, **on)], [tensor(9, **on)], stream=7)
    assert data(run.convert(tmp_path).trace) == set()


def test_an_edge_against_the_recorded_times_is_left_out_and_counted(tmp_path: Path) -> None:
    on = {"device": "cuda:0"}
    run = Run().op("make", NEW, [], [tensor(5, **on)], stream=7)
    run.op("use", NEW, [tensor(5, **on)], [tensor(6, **on)], stream=20)
    run.profile.events[2]["dur"] = 500
    result = run.convert(tmp_path)
    assert data(result.trace) == set()
    told = "1 data edge contradicts the recorded times and was left out"
    assert told in result.report.warnings


def test_case_90_a_data_edge_and_a_wait_close_no_circle(tmp_path: Path) -> None:
    """The host waits for a kernel that, by its tensors, seems to wait for the host's next work."""
    on = {"device": "cuda:0"}
    run = Run().op("use", NEW, [tensor(5, **on)], [tensor(6, **on)], stream=20)
    run.profile.call("cudaDeviceSynchronize", 160, 5, 90)
    run.op("make", NEW, [], [tensor(5, **on)], stream=7)
    trace = run.convert(tmp_path).trace
    assert trace.edges.counts()[EdgeKind.SYNC] == (1, 0)
    assert np.all(trace.source_rows() < trace.edges.target)
    assert data(trace) == set()


def test_case_88_communication_waits_for_the_kernel_that_wrote_what_it_sends(
    tmp_path: Path,
) -> None:
    """No record and no call says that the stream of the collective was made to wait."""
    on = {"device": "cuda:0"}
    run = Run().op("grad", NEW, [], [tensor(5, **on)], stream=7)
    run.op("record_param_comms", "", [[tensor(5, **on)], 1, ["0", ""], 0, "allreduce"],
           [[tensor(5, **on)]], stream=20)  # fmt: skip
    run.op("step", NEW, [tensor(5, **on)], [tensor(6, **on)], stream=7)
    assert data(run.convert(tmp_path).trace) == {
        # That a collective waits for what was launched before it is its group's habit, too.
        ("grad kernel", "record_param_comms kernel", False),
        ("record_param_comms kernel", "step kernel", True),
    }


def test_communication_on_the_host_reads_and_writes_what_it_was_given(tmp_path: Path) -> None:
    run = Run().op("grad", NEW, [], [tensor(5)]).op("other", NEW, [], [tensor(6)])
    run.op("c10d::allreduce_", ALLREDUCE, [[tensor(5)], 1], [[tensor(5)]])
    run.op("gloo:all_reduce", "", [tensor(5)], [], tid=2).op("other", NEW, [], [tensor(6)])
    run.op("step", NEW, [tensor(5)], [tensor(7)])
    assert data(run.convert(tmp_path).trace) == {
        ("grad", "c10d::allreduce_", False), ("grad", "gloo:all_reduce", False),
        ("gloo:all_reduce", "step", False)}  # fmt: skip


def test_a_generated_kernel_may_have_written_any_argument(tmp_path: Path) -> None:
    run = Run().op("make", NEW, [], [tensor(5)]).op("other", NEW, [], [tensor(6)])
    run.op("triton_poi_fused_0", "", [tensor(5), 16], [], kernel_backend="triton")
    run.op("other", NEW, [], [tensor(6)]).op("use", NEW, [tensor(5)], [tensor(7)])
    assert data(run.convert(tmp_path).trace) == {("make", "triton_poi_fused_0", False)}


def test_memory_in_very_many_parts_is_taken_as_a_whole(tmp_path: Path) -> None:
    count = 4 * PARTS
    run = Run().op("make", NEW, [], [tensor(5, 0, count)])
    for part in range(count):
        run.op(f"write {part}", COPY_, [tensor(5, part, 1), tensor(6)], [tensor(5, part, 1)])
        run.op(f"other {part}", NEW, [], [tensor(6)])
        run.op(f"read {part}", NEW, [tensor(5, 0, count)], [tensor(7)])
    found = data(run.convert(tmp_path).trace)
    in_parts = {(source, target) for source, target, inferred in found if inferred}
    assert in_parts == {(f"write {part}", f"read {part}") for part in range(count)}


def test_replay_starts_first_work_of_a_thread_when_it_was_recorded(tmp_path: Path) -> None:
    """A thread that nothing woke begins by itself, not when what it reads is written."""
    run = Run().op("other", NEW, [], [tensor(6)]).op("make", NEW, [], [tensor(5)])
    run.now = 900
    run.op("use", NEW, [tensor(5)], [tensor(6)], tid=2, parent=5)
    trace = run.convert(tmp_path).trace
    assert data(trace) == {("make", "use", False)}
    assert replay(trace).figures[0].span_error == 0


def test_what_is_awaited_over_several_lanes() -> None:
    # Lanes 0, 1, 2 of two nodes each; 0:0 -> 1:0, and 1:1 -> 2:1.
    lane, place = np.repeat([0, 1, 2], 2), np.tile([0, 1], 3)
    source, target = np.array([0, 3]), np.array([2, 5])
    assert last_awaited(lane, place, source, target, 0).tolist() == [0, 1, 0, 0, -1, 0]


def test_the_sum_of_two_random_matrices_in_a_real_trace(data_dir: Path) -> None:
    """simple_add: two kernels draw numbers; each of two additions reads what both wrote."""
    folder = data_dir / "simple_add"
    trace = chakra_et.convert(folder / "host.json.gz", folder / "device.json.gz").trace
    source, target = trace.source_rows(), trace.edges.target
    found = [
        (trace.nodes[int(source[e])], trace.nodes[int(target[e])])
        for e in np.flatnonzero(trace.edges.kind == EdgeKind.DATA)
    ]
    on_host = {(s.host_id, t.host_id) for s, t in found if s.is_cpu_op}
    # fill_ and mul; the second pair uses the storage (20) of the first one again.
    assert on_host == {(22, 26), (45, 49)}
    caller = {t.id: trace.node(t.ctrl_deps[0]).host_id for _, t in found if not t.is_cpu_op}
    writer = {s.id: trace.node(s.ctrl_deps[0]).host_id for s, _ in found if not s.is_cpu_op}
    device = {(writer[s.id], caller[t.id]) for s, t in found if not s.is_cpu_op}
    # The second uniform_ and the first addition are neighbours on the stream: that is written.
    assert device == {(8, 36), (8, 58), (13, 58)}


def test_data_between_streams_of_a_real_run_is_never_against_its_times(data_dir: Path) -> None:
    """resnet_rfid: 1449 of 5769 data edges lead between streams; 87 of them are the only tie."""
    folder = data_dir / "resnet_rfid"
    result = chakra_et.convert(folder / "host.json.gz", folder / "device.json.gz")
    assert result.trace.edges.counts()[EdgeKind.DATA] == (4911, 87)
    assert not [w for w in result.report.warnings if "data edges" in w]


@pytest.fixture
def data_dir(data: Path) -> Path:
    return data
