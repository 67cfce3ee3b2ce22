"""Tables of a run: right values from traces told in a few words, laws on real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import chakra
from places import EXAMPLES
from traces import coll, node, recv, run, send, trace

import chakra_et
from chakra_et import CollectiveType, EdgeKind, TraceSet, operator_times
from chakra_et.kerneltimes.samples import samples_of
from chakra_et.loading import load
from chakra_et.tables import (
    TABLES,
    Table,
    call_table,
    collective_table,
    device_table,
    group_table,
    idle_table,
    kernel_table,
    lane_table,
    latency_table,
    memory_table,
    module_table,
    operator_table,
    overview,
    rank_table,
    step_table,
    type_table,
)

LAUNCH = EdgeKind.LAUNCH
MM = (b"[]", b"[[32,64],[64,16]]", b'["Tensor(float)","Tensor(float)"]')


@pytest.fixture(scope="module")
def ddp() -> TraceSet:
    """Two ranks of data-parallel training on the host."""
    return load(EXAMPLES / "ddp_2rank")


def host(number: int, start: int, took: int, **more: object) -> dict[str, object]:
    """An operator on thread 1."""
    told = {"is_cpu_op": True, "thread": 1, "category": "cpu_op", **more}
    return node(number, start=start, took=took, **told)  # type: ignore[arg-type]


def kernel(number: int, start: int, took: int, **more: object) -> dict[str, object]:
    """A kernel on stream 7, launched by the node before it in number."""
    told = {"is_cpu_op": False, "stream": 7, "device": 0, "category": "kernel", **more}
    return node(number, start=start, took=took, **told)  # type: ignore[arg-type]


def rows(table: Table, *names: str) -> list[tuple[object, ...]]:
    """Some columns of all rows."""
    return [tuple(row[name] for name in names) for row in table.as_dicts()]


def test_calls_without_a_time_are_counted_and_in_no_mean() -> None:
    # On another thread, which the profiler did not follow, the host trace saw two more.
    unseen = {"is_cpu_op": True, "thread": 2, "category": "cpu_op", "name": "aten::mm"}
    timed = [host(n, 10 * n, took, name="aten::mm", inputs=MM) for n, took in ((1, 4), (2, 6))]
    traces = TraceSet({0: trace(*timed, node(3, inputs=MM, **unseen), node(4, **unseen))})
    by_name = operator_table(traces)
    assert ("aten::mm", 4, 10, 5) in rows(by_name, "name", "calls", "total_ns", "mean_ns")
    by_shape = latency_table(traces)
    assert rows(by_shape, "count", "mean_ns", "min_ns", "p50_ns") == [(3, 5, 4, 4)]
    samples = samples_of(traces, "it")
    assert (samples.count.tolist(), samples.total_ns.tolist()) == ([2], [10])


def test_times_of_calls_that_nobody_timed_are_not_known() -> None:
    alone = node(3, inputs=MM, is_cpu_op=True, thread=2, category="cpu_op", name="aten::mm")
    (row,) = latency_table(TraceSet({0: trace(alone)})).as_dicts()
    assert (row["count"], row["flops"]) == (1, 2 * 32 * 64 * 16)
    assert row["p50_ns"] is row["mean_ns"] is row["total_ns"] is None


# --- Operators -----------------------------------------------------------------------------------


def test_operators_are_those_of_operator_times_summed_over_ranks(ddp: TraceSet) -> None:
    expected: dict[object, list[int]] = {}
    for one in ddp.values():
        for item in operator_times(one):
            sums = expected.setdefault((item.name or "(between operations)", item.on_host), [0] * 4)
            for place, value in enumerate((item.calls, item.self_ns, item.wait_ns, item.total_ns)):
                sums[place] += value
    steps = [key for key in expected if str(key).startswith("('ProfilerStep#")]
    assert len(steps) == 3
    table = operator_table(ddp)
    names = ("calls", "self_ns", "wait_ns", "total_ns")
    found = {
        (row["name"], row["on"] == "host"): [row[name] for name in names]
        for row in table.as_dicts()
    }
    together = found.pop(("ProfilerStep*", True))
    assert together == np.sum([expected.pop(key) for key in steps], axis=0).tolist()
    assert found == expected


def test_own_time_is_the_same_however_it_is_told_apart(ddp: TraceSet) -> None:
    by_name = sum(row["self_ns"] for row in operator_table(ddp).as_dicts())
    gaps = sum(r["self_ns"] for r in operator_table(ddp).as_dicts() if r["name"].startswith("(b"))
    by_type = int(type_table(ddp)["self_ns"].sum())
    by_module = module_table(ddp)
    by_lane = int(lane_table(ddp)["self_ns"].sum())
    assert by_name - gaps == by_type == by_lane > 0
    assert int(by_module["host_self_ns"].sum() + by_module["device_ns"].sum()) == by_type


def test_modules_are_chains_of_annotations_around_an_operator_or_its_launch() -> None:
    one = trace(
        host(1, 0, 1, name="ProfilerStep#3", category="user_annotation"),
        host(2, 1, 2, name="forward", category="user_annotation", ctrl=(1,)),
        host(3, 3, 4, name="attention", category="user_annotation", ctrl=(2,)),
        host(4, 7, 8, name="aten::mm", ctrl=(3,)),
        kernel(5, 9, 100, deps=(4,), kind=LAUNCH),
        host(6, 15, 16, name="aten::add", ctrl=(1,)),
    )
    assert rows(module_table({0: one}), "module", "host_self_ns", "device_ns") == [
        ("forward / attention", 12, 100),
        ("(outside of all)", 17, 0),
        ("forward", 2, 0),
    ]


def test_a_run_whose_modules_nobody_named_says_how_to_name_them(tmp_path: Path) -> None:
    one = trace(host(1, 0, 4, name="aten::mm"), host(2, 4, 8, name="aten::add"))
    assert rows(module_table({0: one}), "module") == [("(outside of all)",)]
    chakra_et.write(one, tmp_path / "t.et")
    assert "record_function(NAME)" in chakra("stats", tmp_path / "t.et", "--by", "module").words


def test_generated_traces_are_told_apart_by_phase_and_layer() -> None:
    one = trace(
        kernel(1, 0, 5, phase="forward", layer=0),
        kernel(2, 5, 7, phase="forward", layer=1),
        kernel(3, 12, 1),
    )
    assert rows(module_table({0: one}), "module", "device_ns") == [
        ("forward / layer 1", 7),
        ("forward / layer 0", 5),
        ("(outside of all)", 1),
    ]


# --- Kernels and latencies -----------------------------------------------------------------------


def launching() -> TraceSet:
    """Three products: each launches a kernel by a call of the runtime, of 10, 20 and 60 ns."""
    nodes = []
    for place, took in enumerate((10, 20, 60)):
        first, start = 10 * place, 100 * place
        nodes += [
            host(first, start, 5, name="aten::mm", inputs=MM, inclusive_ns=9, op_schema="mm"),
            host(first + 1, start + 5, 4, name="launch", category="cuda_runtime", ctrl=(first,)),
            kernel(first + 2, start + 9, took, name="gemm", deps=(first + 1,), kind=LAUNCH),
        ]
    nodes.append(kernel(99, 400, 5, name="Memset", category="gpu_memset"))
    return run(trace(*nodes))


def test_kernels_name_the_operator_that_launches_them() -> None:
    assert rows(kernel_table(launching()), "name", "kind", "count", "total_ns", "operator") == [
        ("gemm", "compute", 3, 90, "aten::mm"),
        ("Memset", "memory", 1, 5, ""),
    ]


def test_latencies_are_of_calls_on_the_host_and_of_what_they_launched() -> None:
    table = latency_table(launching())
    assert rows(table, "operator", "on", "count", "p50_ns", "p95_ns", "max_ns", "flops") == [
        ("aten::mm", "device", 3, 20, 60, 60, 2 * 32 * 64 * 16),
        ("aten::mm", "host", 3, 9, 9, 9, 2 * 32 * 64 * 16),
    ]
    assert table["mean_ns"].tolist() == [30, 9]
    assert table["shapes"][0] == "[[32,64],[64,16]]"
    assert table["moved_bytes"][0] == 4 * (32 * 64 + 64 * 16)


def test_kernels_and_other_device_work_are_a_rank_s_device_time() -> None:
    table = device_table(launching())
    assert rows(table, "span_ns", "busy_ns", "idle_ns", "compute_ns", "memory_ns") == [
        (396, 95, 301, 90, 5)
    ]


def test_gaps_on_a_stream_are_the_host_s_where_the_launch_came_late() -> None:
    # Launches begin at 105 and 205, after the kernels before them; the memset has none.
    assert rows(idle_table(launching()), "stream", "host_ns", "short_ns", "other_ns") == [
        ("stream 7", 109 - 19 + 209 - 129, 400 - 269, 0)
    ]


# --- Collectives ---------------------------------------------------------------------------------


def together(kind: int, size: int, ranks: int = 4) -> TraceSet:
    """One collective of all ranks: rank r comes 10 r ns late, and all end together."""
    names = tuple(range(ranks))
    return run(
        *(
            trace(
                coll(1, kind, size, start=10 * r, took=1000 - 10 * r, pg_name="g", stream=1),
                rank=r,
                world=ranks,
                groups={"g": names},
            )
            for r in names
        )
    )


def test_a_collective_is_one_row_with_its_transfer_and_who_came_last() -> None:
    (row,) = call_table(together(CollectiveType.ALL_REDUCE, 4000)).as_dicts()
    assert row["type"] == "ALL_REDUCE"
    assert (row["group"], row["size"], row["members"]) == ("g", 4, 4)
    assert (row["transfer_ns"], row["skew_ns"], row["last_rank"]) == (970, 30, 3)
    assert row["member_ns"] == row["exposed_ns"] == 1000 + 990 + 980 + 970
    assert row["start_ns"] == 30


@pytest.mark.parametrize(
    ("kind", "message", "factor"),
    [
        (CollectiveType.ALL_REDUCE, 4000, 2 * 3 / 4),
        (CollectiveType.ALL_GATHER, 16000, 3 / 4),
        (CollectiveType.REDUCE_SCATTER, 4000, 3 / 4),
        (CollectiveType.ALL_TO_ALL, 4000, 3 / 4),
        (CollectiveType.BROADCAST, 4000, 1),
        (CollectiveType.REDUCE, 4000, 1),
    ],
)
def test_bandwidths_are_those_of_nccl_tests(
    kind: CollectiveType, message: int, factor: float
) -> None:
    # https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    for table in (call_table, collective_table):
        (row,) = table(together(kind, 4000)).as_dicts()
        assert row["message_bytes"] == message
        assert row["algorithm_bytes_per_s"] == pytest.approx(message / 970e-9)
        assert row["bus_bytes_per_s"] == pytest.approx(message / 970e-9 * factor)


def test_communication_that_computing_hides_is_not_exposed() -> None:
    one = trace(
        coll(1, start=0, took=100, pg_name="g", stream=1),
        kernel(2, 20, 50),
        groups={"g": (0,)},
    )
    (row,) = collective_table({0: one}).as_dicts()
    assert row["exposed_share"] == 0.5
    (row,) = rank_table({0: one}).as_dicts()
    assert (row["span_ns"], row["overlap_ns"], row["exposed_comm_ns"]) == (100, 50, 50)


def test_messages_are_a_row_of_two_ranks() -> None:
    ranks = run(
        trace(send(1, 1, 640, start=0, took=64), rank=0, world=2),
        trace(recv(1, 0, 640, start=50, took=14), rank=1, world=2),
    )
    (row,) = call_table(ranks).as_dicts()
    assert (row["type"], row["size"], row["members"]) == ("SEND_RECV", 2, 2)
    assert row["bus_bytes_per_s"] == row["algorithm_bytes_per_s"] == pytest.approx(640 / 14e-9)


def test_a_collective_of_which_nothing_is_known_claims_nothing() -> None:
    one = trace(node(1, coll(1)["type"], start=0, took=5, is_cpu_op=False, pg_name="g"))
    (row,) = call_table({3: one}).as_dicts()
    assert (row["type"], row["rank"]) == ("unknown collective", 3)
    assert [row[k] for k in ("message_bytes", "algorithm_bytes_per_s", "skew_ns", "last_rank")] == [
        None
    ] * 4


def test_groups_sum_up_their_calls(ddp: TraceSet) -> None:
    (row,) = group_table(ddp).as_dicts()
    assert row["ranks"] == [0, 1]
    assert row["calls"] == len(call_table(ddp))
    assert row["transfer_ns"] == int(collective_table(ddp)["transfer_ns"].sum())


# --- Ranks, steps, memory ------------------------------------------------------------------------


def test_parts_of_a_step_add_up_to_it(ddp: TraceSet) -> None:
    steps = step_table(ddp)
    assert rows(steps, "rank", "step") == [(r, s) for r in (0, 1) for s in (2, 3, 4)]
    parts = [steps[name] for name in ("compute_ns", "overlap_ns", "exposed_comm_ns", "other_ns")]
    assert np.array_equal(sum(parts), steps["duration_ns"])
    assert all((part >= 0).all() for part in parts)


def test_a_storage_counts_from_its_first_to_its_last_use() -> None:
    def named(storage: int, elements: int) -> tuple[bytes, bytes, bytes]:
        tensor = b'[[%d,%d,0,%d,4,"cuda:0"]]' % (storage, storage, elements)
        return tensor, b"[[%d]]" % elements, b'["Tensor(float)"]'

    one = trace(
        host(1, 0, 1, inputs=named(1, 100)),
        host(2, 1, 1, inputs=named(2, 1000)),
        host(3, 2, 1, inputs=named(1, 100)),
        host(4, 3, 1, inputs=named(3, 200)),
    )
    names = ("device", "storages", "all_bytes", "peak_bytes", "peak_node")
    assert rows(memory_table({0: one}), *names) == [("cuda:0", 3, 5200, 4400, 2)]


# --- All of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("by", TABLES)
def test_no_table_minds_a_trace_of_nothing_or_of_one_node_without_times(by: str) -> None:
    nothing = TABLES[by]({0: trace()})
    assert nothing.as_dicts() == [] or by in ("rank", "device")
    one = TABLES[by]({0: trace(node(5, name="\x1b[31m<b>\n"))})
    assert len(one.as_dicts()) <= 1
    assert set(one.columns) == set(nothing.columns)


def test_the_overview_leaves_out_what_a_run_has_none_of() -> None:
    assert set(overview(launching())) == {"rank", "name", "kernel"}


def test_device_time_is_what_hta_says_of_it(data: Path) -> None:
    # HolisticTraceAnalysis 0.5.0, get_temporal_breakdown (tools/compare_breakdown.py): idle,
    # computing, busy otherwise, and first to last work, in us, of ranks 0 and 7.
    expected = {0: (6419, 1034, 5556, 13009), 7: (8308, 1059, 1600, 10967)}
    profiles = [data / "dlrm8" / f"device.{rank}.json.gz" for rank in expected]
    for row in device_table(load(profiles)).as_dicts():
        idle, compute, other, span = (1000 * us for us in expected[row["rank"]])
        assert row["idle_ns"] == idle
        assert row["compute_ns"] == compute
        assert row["busy_ns"] - row["compute_ns"] == other
        assert row["span_ns"] == span


def test_a_run_without_times_says_so() -> None:
    assert "no start is recorded" in rank_table({0: trace(node(1, took=5))}).note
    assert "no start is recorded" not in rank_table({0: trace(node(1, start=0, took=5))}).note
