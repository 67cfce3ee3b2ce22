"""Texts of LLMServingSim become sets: every value has its place, and all bytes are kept."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from command import chakra
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.errors import ChakraError, FormatError
from chakra_et.model import Trace, TraceSet
from chakra_et.workloads.serving_program import (
    lay_out_serving,
    serving_left_out,
    serving_program,
)
from chakra_et.workloads.serving_text import read_serving_text

COLUMNS = (
    "Layername comp_time input_loc input_size weight_loc weight_size output_loc output_size "
    "comm_type comm_size misc"
)
# The rows that LLMServingSim's documentation shows (docs/docs/reference/trace-format.md).
FIRST = "embedding_0 5386 REMOTE:0 40 LOCAL 1050673152 LOCAL 81920 NONE 0 NONE"
BLOCK = [
    "layernorm_1 2416 LOCAL 81920 LOCAL 8192 LOCAL 81920 NONE 0 NONE",
    "qkv_proj_2 36000 LOCAL 81920 LOCAL 50331648 LOCAL 122880 NONE 0 NONE",
    "rotary_emb_3 2795 LOCAL 102400 LOCAL 0 LOCAL 102400 NONE 0 NONE",
    "attention_4 7985 LOCAL 81920 LOCAL 0 LOCAL 81920 NONE 0 NONE",
    "o_proj_5 25611 LOCAL 81920 LOCAL 33554432 LOCAL 81920 NONE 0 NONE",
]
LAST = "sampler_291 24746 LOCAL 2565120 LOCAL 0 REMOTE:0 40 NONE 0 NONE"
EXPERTS = [
    "EXPERT 0",
    "moe_expert_local_3_rank0 1842 LOCAL 524288 LOCAL 9437184 LOCAL 524288 ALLTOALL 524288 NONE",
    "EXPERT END",
    "EXPERT 1",
    "moe_expert_local_3_rank1 1804 LOCAL 524288 LOCAL 9437184 LOCAL 524288 ALLTOALL 524288 NONE",
    "EXPERT END",
]
CACHE = [
    "kv_load 0 LOCAL 0 REMOTE:0 8388608 LOCAL 0 NONE 0 NONE",
    "kv_evict 0 LOCAL 0 CXL:2 2097152 LOCAL 0 NONE 0 NONE",
]


def reduced(row: str, what: str = "ALLREDUCE 81920") -> str:
    """A row with a collective."""
    return row.replace("NONE 0 NONE", f"{what} NONE")


def text(
    path: Path, rows: list[str], head: str = "COLOCATED\t\tmodel_parallel_NPU_group: 1"
) -> Path:
    """A file of these rows."""
    count = sum(not row.startswith(("EXPERT", "PIM")) for row in rows)
    path.write_text("\n".join([head, str(count), COLUMNS, *rows]) + "\n")
    return path


def traces_of(
    path: Path, ranks: int | None = None, dims: tuple[int, ...] = (), steps: int = 1
) -> TraceSet:
    layout = lay_out_serving(read_serving_text(path), ranks, dims)
    return layout.workload.traces(serving_program(layout, steps))


def names(trace: Trace) -> list[str]:
    return [node.name for node in trace.nodes]


def waits(trace: Trace, name: str) -> set[str]:
    """What the node of a name waits for."""
    by_id = {node.id: node.name for node in trace.nodes}
    (found,) = [node for node in trace.nodes if node.name == name]
    return {by_id[i] for i in [*found.ctrl_deps, *found.data_deps]}


# ---------------------------------------------------------------------------------------------
# Every value has its place


def test_the_documented_rows(tmp_path: Path) -> None:
    trace = traces_of(text(tmp_path / "a.txt", [FIRST, *BLOCK, LAST]))[0]
    nodes = list(trace.nodes)
    assert names(trace)[:2] == ["embedding_0 load input", "embedding_0"]
    load, embedding, store = nodes[0], nodes[1], nodes[-1]
    assert load.type == NodeType.MEM_LOAD
    assert (load.tensor_size, load.tensor_loc, load.tensor_device) == (40, 2, 0)
    assert embedding.duration_ns == 5386
    assert embedding.op_type == "embedding"
    assert embedding.tensor_size == 40 + 1050673152 + 81920
    assert store.type == NodeType.MEM_STORE
    assert (store.name, store.tensor_size, store.tensor_loc) == ("sampler_291 store output", 40, 2)
    assert [node.layer for node in nodes] == [0, 0, 1, 2, 3, 4, 5, 6, 6]
    assert waits(trace, "layernorm_1") == {"embedding_0"}
    assert sum(node.duration_ns for node in nodes) == 5386 + 74807 + 24746


def test_tensor_parallel_ranks_reduce_behind_the_row(tmp_path: Path) -> None:
    path = text(tmp_path / "a.txt", [FIRST, *BLOCK[:-1], reduced(BLOCK[-1]), LAST])
    traces = traces_of(path, 4)
    (node,) = [n for n in traces[3].nodes if n.type == NodeType.COMM_COLL]
    assert (node.comm_type, node.comm_size) == (CollectiveType.ALL_REDUCE, 81920)
    assert [g.ranks for g in traces[3].groups if g.name == node.pg_name] == [(0, 1, 2, 3)]
    assert node.name in waits(traces[3], "sampler_291")


def test_collectives_are_for_the_dimensions_that_they_name(tmp_path: Path) -> None:
    rows = [reduced(BLOCK[0], "ALLREDUCE:1,0 64"), reduced(BLOCK[1], "ALLTOALL:0,1 32")]
    traces = traces_of(text(tmp_path / "a.txt", rows), dims=(2, 3))
    told = {
        node.name: (
            next(g.ranks for g in traces[5].groups if g.name == node.pg_name),
            list(node.attributes["involved_dim"]),
        )
        for node in traces[5].nodes
        if node.type == NodeType.COMM_COLL
    }
    assert told == {
        "layernorm_1 all_reduce": ((4, 5), [True, False]),
        "qkv_proj_2 all_to_all": ((1, 3, 5), [False, True]),
    }


def test_stages_hand_on_what_the_row_before_leaves(tmp_path: Path) -> None:
    head = "COLOCATED\t\tmodel_parallel_NPU_group: 2\t\tpp_stage_boundaries: 3"
    path = text(tmp_path / "a.txt", [*CACHE, FIRST, *BLOCK, LAST], head)
    traces = traces_of(path, 4)
    assert names(traces[1])[-2:] == ["qkv_proj_2", "send activations"]
    assert names(traces[3])[2:4] == ["receive activations", "rotary_emb_3"]
    send, receive = list(traces[1].nodes)[-1], list(traces[3].nodes)[2]
    assert (send.comm_dst, send.comm_size) == (3, 122880)
    assert (receive.comm_src, receive.comm_size) == (1, 122880)


def test_stages_without_boundaries_have_equally_many_rows(tmp_path: Path) -> None:
    head = "DECODE\t\tmodel_parallel_NPU_group: 2"
    traces = traces_of(text(tmp_path / "a.txt", [FIRST, *BLOCK, LAST], head))
    computing = [[n.name for n in t.nodes if n.type == NodeType.COMP] for t in traces.values()]
    assert [len(found) for found in computing] == [4, 3]
    assert next(iter(traces[1].nodes)).phase != "prefill"
    assert {n.phase for n in traces[1].nodes if n.type == NodeType.COMP} == {"decode"}


def test_prefill_sends_keys_and_values_to_its_decode_instance(tmp_path: Path) -> None:
    rows = [FIRST, BLOCK[0], reduced(BLOCK[1], "NONE 40960"), *BLOCK[2:], LAST]
    head = "PREFILL\t\tmodel_parallel_NPU_group: 1"
    traces = traces_of(text(tmp_path / "a.txt", rows, head), 2)
    assert len(traces) == 4
    (send,) = [n for n in traces[1].nodes if n.type == NodeType.COMM_SEND]
    (receive,) = traces[3].nodes
    assert (send.comm_src, send.comm_dst, send.comm_size) == (1, 3, 40960)
    assert (receive.comm_src, receive.comm_dst, receive.comm_size) == (1, 3, 40960)
    # Nobody waits for it: the next row only needs the row before.
    assert waits(traces[1], "rotary_emb_3") == {"qkv_proj_2"}


def test_slower_memory_comes_before_all_else(tmp_path: Path) -> None:
    trace = traces_of(text(tmp_path / "a.txt", [*CACHE, *BLOCK]))[0]
    load, evict, *_ = trace.nodes
    assert (load.type, load.tensor_size, load.tensor_loc) == (NodeType.MEM_LOAD, 8388608, 2)
    assert (evict.type, evict.tensor_size, evict.tensor_loc) == (NodeType.MEM_STORE, 2097152, 3)
    assert evict.tensor_device == 2
    assert waits(trace, "layernorm_1") == {"kv_evict"}


def test_each_rank_runs_its_own_experts(tmp_path: Path) -> None:
    traces = traces_of(text(tmp_path / "a.txt", [BLOCK[0], *EXPERTS, BLOCK[4]]), 2)
    for rank, took in enumerate((1842, 1804)):
        (expert,) = [n for n in traces[rank].nodes if "expert" in n.name and n.comm_size is None]
        assert expert.duration_ns == took
    assert "moe_expert_local_3_rank1 all_to_all" in waits(traces[1], "o_proj_5")


def test_channels_and_halves_run_side_by_side(tmp_path: Path) -> None:
    def row(name: str, tag: str) -> str:
        return f"{name} 100 LOCAL 8 LOCAL 0 LOCAL 8 NONE 0 {tag}"

    rows = [
        row("qkv_0", "BATCH_1"),
        "PIM 0", row("pim_1", "BATCH_1"), "PIM END",
        "PIM 1", row("pim_2", "BATCH_1"), "PIM END",
        row("qkv_3", "BATCH_2"),
        row("o_4", "BATCH_1"),
        row("out_5", "NONE"),
    ]  # fmt: skip
    trace = traces_of(text(tmp_path / "a.txt", rows))[0]
    assert waits(trace, "pim_1") == waits(trace, "pim_2") == {"qkv_0"}
    # The device runs one row at a time, so the second half begins behind the first one's row.
    assert waits(trace, "qkv_3") == {"qkv_0"}
    assert waits(trace, "o_4") == {"pim_1", "pim_2", "qkv_3"}
    assert waits(trace, "out_5") == {"o_4"}
    assert [n.micro_batch for n in trace.nodes] == [0, 0, 0, 1, 0, None]


def test_an_event_is_a_time_that_passes(tmp_path: Path) -> None:
    path = text(tmp_path / "a.txt", ["tick_0 7 LOCAL 0 LOCAL 0 LOCAL 0 NONE 0 NONE"], "EVENT")
    assert [n.duration_ns for t in traces_of(path, 3).values() for n in t.nodes] == [7, 7, 7]


# ---------------------------------------------------------------------------------------------
# All bytes are kept


KINDS = st.sampled_from(["NONE", "ALLREDUCE", "ALLTOALL", "ALLGATHER", "REDUCESCATTER"])


@given(
    rows=st.lists(st.tuples(KINDS, st.integers(0, 1 << 30), st.integers(0, 10**6)), min_size=2),
    stages=st.integers(1, 2),
    tp=st.sampled_from([1, 2, 4]),
    steps=st.integers(1, 2),
)
def test_bytes_and_times_are_those_of_the_text(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, int, int]],
    stages: int,
    tp: int,
    steps: int,
) -> None:
    lines = [
        f"row_{n} {took} LOCAL 1 LOCAL 2 LOCAL 4 {kind} {size} NONE"
        for n, (kind, size, took) in enumerate(rows)
    ]
    head = f"COLOCATED model_parallel_NPU_group: {stages}"
    path = text(tmp_path_factory.mktemp("texts") / "a.txt", lines, head)
    layout = lay_out_serving(read_serving_text(path), tp * stages)
    traces = layout.workload.traces(serving_program(layout, steps))
    # One rank of each stage has all that the text tells.
    of_stages = [traces[stage * tp] for stage in range(stages)]
    nodes = [node for trace in of_stages for node in trace.nodes]
    assert sum(node.duration_ns for node in nodes) == steps * sum(row[2] for row in rows)
    told: Counter[str] = Counter()
    for kind, size, _ in rows:
        if kind != "NONE" and tp > 1:
            told[kind] += steps * size
    found: Counter[str] = Counter()
    for node in nodes:
        if node.type == NodeType.COMM_COLL:
            found[CollectiveType(node.comm_type).name.replace("_", "")] += node.comm_size
    assert +found == +told
    left = serving_left_out(layout)
    assert left.get("bytes without a collective", 0) == sum(
        kind == "NONE" and size > 0 for kind, size, _ in rows
    )


# ---------------------------------------------------------------------------------------------
# Errors


@pytest.mark.parametrize(
    ("head", "rows", "problem"),
    [
        ("COLOCATED model_parallel_NPU_group: 0", BLOCK, "0 stages"),
        ("COLOCATED model_parallel_NPU_group:", BLOCK, "no list of names and values"),
        ("COLOCATED pipeline: 2", BLOCK, "no list of names and values"),
        ("COLOCATED model_parallel_NPU_group: 9", BLOCK, "cannot be cut into 9 stages"),
        (
            "COLOCATED model_parallel_NPU_group: 3 pp_stage_boundaries: 3,2",
            BLOCK,
            "cannot be cut into 3 stages",
        ),
        ("PREFILL", [BLOCK[0] + " 1"], "12 columns, not 11"),
        ("PREFILL", [BLOCK[0].replace("2416", "2.5")], "the time is '2.5'"),
        ("PREFILL", [BLOCK[0].replace("LOCAL 8192 ", "DISK 8192 ")], "no place 'DISK'"),
        ("PREFILL", [reduced(BLOCK[0], "ALLREDUCE:1,x 8")], "no collective 'ALLREDUCE:1,x'"),
        ("PREFILL", [BLOCK[0].replace("NONE 0 NONE", "NONE 0 BATCH_9")], "no tag 'BATCH_9'"),
        ("PREFILL", ["EXPERT 0", BLOCK[0]], "EXPERT 0 has no end"),
        ("PREFILL", ["EXPERT END", BLOCK[0]], "does not open or close a block"),
        ("PREFILL", [BLOCK[0], *CACHE], "come before all other rows"),
        ("PREFILL", [], "0 rows are announced"),
    ],
)
def test_a_broken_text(tmp_path: Path, head: str, rows: list[str], problem: str) -> None:
    with pytest.raises(FormatError, match=problem) as caught:
        read_serving_text(text(tmp_path / "a.txt", rows, head))
    assert "line " in str(caught.value)


def test_a_text_that_was_cut(tmp_path: Path) -> None:
    path = text(tmp_path / "a.txt", [FIRST, *BLOCK, LAST])
    path.write_text(path.read_text().rsplit("\n", 2)[0])
    with pytest.raises(FormatError, match="7 rows are announced, 6 follow"):
        read_serving_text(path)


@pytest.mark.parametrize(
    ("ranks", "dims", "problem"),
    [
        (3, (), "3 ranks for 2 stages"),
        (5, (2, 2), "a network of 2x2 has not 5 ranks"),
        (None, (4, 1), "the second dimension is that of the 2 stages"),
        (None, (2, 2, 2), "collectives name 2 dimensions, not 3"),
    ],
)
def test_ranks_that_do_not_fit(
    tmp_path: Path, ranks: int | None, dims: tuple[int, ...], problem: str
) -> None:
    rows = [*BLOCK, reduced(BLOCK[0], "ALLREDUCE:1,0 8")]
    path = text(tmp_path / "a.txt", rows, "COLOCATED model_parallel_NPU_group: 2")
    with pytest.raises(ChakraError, match=problem):
        lay_out_serving(read_serving_text(path), ranks, dims)


# ---------------------------------------------------------------------------------------------
# The command


def test_the_command_knows_whose_text_it_is(tmp_path: Path) -> None:
    rows = [FIRST, *BLOCK[:-1], reduced(BLOCK[-1]), LAST]
    path = text(tmp_path / "batch.txt", rows)
    done = chakra("generate", "text", path, "--ranks", 2, "-o", tmp_path / "set")
    assert done.code == 0
    assert "as LLMServingSim reads it" in done.words
    assert chakra("validate", tmp_path / "set", "--profile", "core").code == 0
    refused = chakra("convert", path, "-o", tmp_path / "out.et")
    assert "chakra generate text" in refused.errors
