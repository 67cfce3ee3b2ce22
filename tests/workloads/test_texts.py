"""Workload texts: every value has its node, and who waits for whom is what the policy says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import chakra_et
from chakra_et import CollectiveType, NodeType, Trace
from chakra_et.cli.generate import generate_command
from chakra_et.errors import ChakraError, FormatError
from chakra_et.model import Node, TraceSet
from chakra_et.validators import Severity
from chakra_et.workloads import Dialect, lay_out, read_text, text_program
from chakra_et.workloads.text_summary import left_out
from chakra_et.workloads.texts import Policy

DLRM = """HYBRID_DLRM\t4\t\t\t
8\t\t
Embedding\t-1\t300\tALLTOALL\t98304\t300\tALLTOALL\t98304\t300\tNONE\t0\t98
MLP_Bottom_0\t-1\t1280\tNONE\t0\t794\tNONE\t0\t896\tALLREDUCE\t13312\t13
MLP_Bottom_1\t-1\t2560\tNONE\t0\t2560\tNONE\t0\t1792\tALLREDUCE\t524288\t524
MLP_Bottom_2\t-1\t2560\tNONE\t0\t2560\tNONE\t0\t1792\tALLREDUCE\t524288\t524
MLP_Bottom_3\t-1\t800\tNONE\t0\t1280\tNONE\t0\t800\tALLREDUCE\t16384\t16
MLP_Top_0\t-1\t6400\tNONE\t0\t6400\tNONE\t0\t4480\tALLREDUCE\t1064960\t1065
MLP_Top_1\t-1\t2560\tNONE\t0\t2560\tNONE\t0\t1792\tALLREDUCE\t524288\t524
MLP_Top_2\t-1\t2560\tNONE\t0\t2560\tNONE\t0\t1792\tALLREDUCE\t524288\t524
"""
"""An example of ASTRA-sim 1.0 (astra-sim/astra-sim, inputs/workload/ASTRA-sim-1.0)."""
LAYERS = """3
a -1 10000 ALLGATHER 64 11000 ALLREDUCE 128 12000 ALLREDUCE 256 13
b -1 20000 ALLGATHER 64 21000 ALLREDUCE 128 22000 ALLREDUCE 256 23
c -1 30000 NONE 0 31000 ALLREDUCE 128 32000 ALLREDUCE 256 33
"""
SIMAI = """HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 2 vpp: 1 ga: 2 \
all_gpus: 16 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 4096.0
8
grad_gather   -1  1 NONE 0  1 NONE 0  1 ALLGATHER 1024 100
moe_grad_norm -1  1 NONE 0  1 NONE 0  1 REDUCESCATTER_DP_EP 2048 100
embedding_layer -1 7000 ALLREDUCE 512 1 NONE 0 9000 NONE 0 100
mlp_moelayer  -1  5000 ALLTOALL_EP 768 5000 ALLTOALL_EP 768 1 NONE 0 100
embedding_layer -1 7000 ALLREDUCE 512 1 NONE 0 9000 NONE 0 100
mlp_moelayer  -1  5000 ALLTOALL_EP 768 5000 ALLTOALL_EP 768 1 NONE 0 100
cross_entropy1 -1 0 ALLREDUCE 8192 0 REDUCESCATTER 0 0 NONE 0 100
optimizer1 -1 0 ALLREDUCE 4 0 NONE 0 0 NONE 0 100
"""

Make: TypeAlias = Callable[..., TraceSet]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """From a text to the traces of its ranks."""

    def from_text(
        content: str, ranks: int | None = 8, dims: tuple[int, ...] = (), steps: int = 1,
        dialect: Dialect | None = None, clock: float = 1.0,
    ) -> TraceSet:  # fmt: skip
        path = tmp_path / "workload.txt"
        path.write_text(content)
        layout = lay_out(read_text(path, dialect), None if dims else ranks, dims)
        return layout.workload.traces(text_program(layout, clock, steps))

    return from_text


def called(trace: Trace, name: str) -> list[Node]:
    found = [node for node in trace.nodes if node.name == name]
    assert found, name
    return found


def behind(trace: Trace, name: str) -> set[str]:
    """The names of all that the last node of this name waits for, directly or not."""
    by_id = {node.id: node for node in trace.nodes}
    todo, seen = [called(trace, name)[-1].id], set()
    while todo:
        node = by_id[todo.pop()]
        for parent in [*node.data_deps, *node.ctrl_deps]:
            if parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return {by_id[id].name for id in seen}


def members(trace: Trace) -> dict[str, tuple[int, ...]]:
    return {group.name: group.ranks for group in trace.groups}


def bytes_by_type(trace: Trace) -> Counter[CollectiveType]:
    found: Counter[CollectiveType] = Counter()
    for node in trace.nodes:
        if node.type is NodeType.COMM_COLL:
            found[CollectiveType(node.comm_type)] += node.comm_size or 0
    return found


# ---------------------------------------------------------------------------------------------
# Each value has its node


def test_the_dlrm_example(make: Make) -> None:
    trace = make(DLRM)[3]
    assert bytes_by_type(trace) == {
        CollectiveType.ALL_TO_ALL: 2 * 98304,
        CollectiveType.ALL_REDUCE: 13312 + 4 * 524288 + 16384 + 1064960,
    }
    (top,) = called(trace, "MLP_Top_0 weight gradient")
    assert (top.duration_ns, top.layer, top.phase, top.op_type, top.stream) == (
        4480, 5, "backward", "weight gradient", 0,
    )  # fmt: skip
    (update,) = called(trace, "MLP_Top_0 weight gradient update")
    assert update.duration_ns == 1065
    assert not chakra_et.validate(make(DLRM), "astra-sim").count(Severity.WARNING)


def test_cycles_have_a_clock(make: Make) -> None:
    (node,) = called(make(DLRM, clock=1.6)[0], "MLP_Top_1 forward")
    assert node.duration_ns == 1600


@pytest.mark.parametrize(
    ("head", "dims", "forward", "weights"),
    [
        ("DATA", (8,), [*range(8)], [*range(8)]),
        ("MODEL", (8,), [*range(8)], [*range(8)]),
        ("HYBRID_DATA_MODEL", (4, 2), [0, 1, 2, 3], [1, 5]),
        ("HYBRID_MODEL_DATA", (4, 2), [1, 5], [0, 1, 2, 3]),
        ("HYBRID_MODEL_DATA", (2, 2, 2), [1, 3, 5, 7], [0, 1]),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 4", (8,), [0, 1, 2, 3], [1, 5]),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 4", (2, 2, 2), [0, 1, 2, 3], [1, 5]),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 2", (4, 2), [0, 1], [1, 3, 5, 7]),
    ],
)
def test_the_policy_chooses_groups(
    make: Make, head: str, dims: tuple[int, ...], forward: list[int], weights: list[int]
) -> None:
    trace = make(f"{head}\n{LAYERS}", dims=dims)[1]
    (gather,) = called(trace, "a forward all_gather")
    (reduce,) = called(trace, "a weight gradient all_reduce")
    assert list(members(trace)[gather.pg_name or ""]) == forward
    assert list(members(trace)[reduce.pg_name or ""]) == weights


def test_dimensions_of_a_network_that_was_given_are_kept(make: Make) -> None:
    trace = make(f"HYBRID_DATA_MODEL\n{LAYERS}", dims=(4, 2))[0]
    assert called(trace, "a forward all_gather")[0].involved_dim == [True, False]
    assert called(trace, "a weight gradient all_reduce")[0].involved_dim == [False, True]
    (whole,) = called(make(f"DATA\n{LAYERS}", dims=(4, 2))[0], "a weight gradient all_reduce")
    assert whole.involved_dim is None


def test_layers_can_have_policies_of_their_own(make: Make) -> None:
    policies = ("HYBRID_MODEL_DATA", "DATA", "HYBRID_DATA_MODEL")
    first, *lines = LAYERS.splitlines()
    text = "\n".join([first, *(f"{line} {p}" for line, p in zip(lines, policies, strict=True))])
    trace = make(f"HYBRID_CUSTOMIZED\n{text}\n", dims=(4, 2))[0]
    involved = [called(trace, f"{n} weight gradient all_reduce")[0].involved_dim for n in "abc"]
    assert involved == [[True, False], None, [False, True]]


# ---------------------------------------------------------------------------------------------
# Who waits for whom


def test_data_parallel_sums_overlap_and_the_next_step_waits(make: Make) -> None:
    trace = make(f"DATA\n{LAYERS}", steps=2)[0]
    step = make(f"DATA\n{LAYERS}")[0]
    assert "c weight gradient all_reduce" not in behind(step, "a weight gradient")
    assert {"c weight gradient", "c input gradient"} <= behind(step, "b weight gradient")
    assert "c weight gradient all_reduce" not in behind(trace, "b forward")
    assert "b weight gradient update" in behind(trace, "b forward")
    assert "c weight gradient update" in behind(trace, "c forward")
    assert not [node for node in step.nodes if node.name == "a input gradient"]


def test_transformers_wait_for_input_gradients_at_once(make: Make) -> None:
    text = f"HYBRID_TRANSFORMER model_parallel_NPU_group: 4\n{LAYERS}"
    trace = make(text)[0]
    assert "c input gradient update" in behind(trace, "c weight gradient")
    assert "a forward update" in behind(trace, "b forward")


def test_other_hybrids_compute_weight_gradients_meanwhile(make: Make) -> None:
    trace = make(f"HYBRID_DATA_MODEL\n{LAYERS}", dims=(4, 2))[0]
    assert "c input gradient all_reduce" not in behind(trace, "c weight gradient")
    assert "c input gradient update" in behind(trace, "b input gradient")
    assert "c weight gradient all_reduce" not in behind(trace, "a weight gradient all_reduce")


def test_the_embedding_of_a_dlrm_is_exchanged_beside_its_bottom_layers(make: Make) -> None:
    trace = make(DLRM)[0]
    exchange = "Embedding forward all_to_all"
    assert exchange not in behind(trace, "MLP_Bottom_3 forward")
    assert exchange in behind(trace, "MLP_Top_0 forward")
    back = "Embedding input gradient all_to_all"
    assert "MLP_Top_0 input gradient" in behind(trace, back)
    assert "MLP_Bottom_3 weight gradient" not in behind(trace, back)
    assert back not in behind(trace, "Embedding weight gradient")
    assert back in behind(make(DLRM, steps=2)[0], "Embedding forward")
    enhanced = DLRM.replace("HYBRID_DLRM", "HYBRID_DLRM_ENHANCED")
    assert back not in behind(make(enhanced, steps=2)[0], "Embedding forward")


def test_layers_are_run_again_from_their_checkpoint(make: Make) -> None:
    head = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 checkpoints: 2 0 1 "
    trace = make(f"{head}checkpoint_initiates: 1 2\n{LAYERS}")[0]
    again = [node.name for node in trace.nodes if node.phase == "recompute"]
    assert again == ["b forward", "b forward all_gather", "b forward update"]
    assert "b forward update" in behind(trace, "c input gradient")
    assert "c forward" in behind(trace, "b forward")


def test_a_micro_benchmark_is_one_collective_behind_the_other(make: Make) -> None:
    lines = "\n".join(f"m{i} -1 1 NONE 0 1 NONE 0 1 ALLGATHER {4096 << i} 1" for i in range(3))
    text = f"MICRO\n3\n{lines}\n"
    trace = make(text)[0]
    sizes = [n.comm_size for n in trace.nodes if n.type is NodeType.COMM_COLL]
    assert sizes == [4096, 8192, 16384]
    assert "m0 weight gradient all_gather" in behind(trace, "m2 weight gradient all_gather")
    simai = make(text, dialect=Dialect.SIMAI)[0]
    assert bytes_by_type(simai)[CollectiveType.ALL_GATHER] == sum(sizes) // 8


# ---------------------------------------------------------------------------------------------
# SimAI


def test_simai_has_groups_of_megatron_and_a_pipeline(make: Make) -> None:
    traces = make(SIMAI, ranks=None)
    assert len(traces) == 16
    found = Counter(
        (NodeType(n.type).name, CollectiveType(n.comm_type or 0).name, n.comm_size,
         members(traces[5])[n.pg_name] if n.pg_name else (n.comm_src, n.comm_dst))
        for n in traces[5].nodes if n.comm_size
    )  # fmt: skip
    coll = "COMM_COLL"
    assert found == {
        (coll, "ALL_GATHER", 1024 // 4, (1, 3, 5, 7)): 1,
        (coll, "REDUCE_SCATTER", 2048, (1, 5)): 1,
        (coll, "ALL_REDUCE", 512, (4, 5)): 2,
        (coll, "ALL_TO_ALL", 768, (5, 7)): 4,
        (coll, "ALL_REDUCE", 8192, (4, 5)): 1,
        (coll, "ALL_REDUCE", 4, (4, 5)): 1,
        ("COMM_SEND", "ALL_REDUCE", 4096, (5, 13)): 2,
        ("COMM_RECV", "ALL_REDUCE", 4096, (13, 5)): 2,
    }
    last = traces[13]
    assert "receive activations" in behind(last, "embedding_layer forward")
    assert "mlp_moelayer forward update" in behind(traces[5], "send activations")
    assert "cross_entropy1 forward all_reduce" not in behind(traces[5], "send activations")
    assert "receive gradients" in behind(traces[5], "mlp_moelayer input gradient")
    assert not chakra_et.validate(traces, "astra-sim").count(Severity.WARNING)


@pytest.mark.parametrize(
    ("head", "dialect"),
    [
        ("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 0 "
         "checkpoint_initiates: 0", Dialect.SIMAI),
        ("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 1 0 "
         "checkpoint_initiates: 1 1", Dialect.ASTRA_SIM),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 2", Dialect.ASTRA_SIM),
        ("HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ga: 1", Dialect.SIMAI),
    ],
)  # fmt: skip
def test_whose_text_it_is(tmp_path: Path, head: str, dialect: Dialect) -> None:
    path = tmp_path / "w.txt"
    path.write_text(f"{head}\n{LAYERS}")
    assert read_text(path).dialect is dialect


def test_without_tensor_parallelism_parameters_are_gathered_over_dp(make: Make) -> None:
    trace = make(
        "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 checkpoints: 0 "
        f"checkpoint_initiates: 0\n{LAYERS}"
    )[3]
    (gather,) = called(trace, "a forward all_gather")
    assert (gather.comm_size, len(members(trace)[gather.pg_name or ""])) == (64 // 8, 8)


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(SIMAI.replace("ga: 2", "ga: 3") + "one more line\n")
    assert left_out(lay_out(read_text(path), 8)) == {
        "collectives of 0 bytes": 1,
        "collectives in groups of one rank (edp)": 1,
        "updates behind no collective": 1,
        "lines behind the last layer": 1,
        "pp_comm: the text does not show its micro-batches, or there is one stage": 1,
    }


# ---------------------------------------------------------------------------------------------
# Laws

types = st.sampled_from(["NONE", "ALLREDUCE", "ALLTOALL", "ALLGATHER", "REDUCESCATTER"])
# A simulator cannot divide a collective of a few bytes among ranks (ET712).
works = st.tuples(st.integers(0, 9999), types, st.just(0) | st.integers(256, 1 << 20))
layers = st.lists(st.tuples(works, works, works, st.integers(0, 99)), max_size=4)
heads = st.sampled_from(
    ["DATA", "MODEL", "MICRO", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_DLRM 0",
     "HYBRID_DLRM_ENHANCED DLRM_LAST_BOTTOM_LAYER: 0",
     "HYBRID_TRANSFORMER model_parallel_NPU_group: 2",
     "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 0 "
     "checkpoint_initiates: 0"]
)  # fmt: skip


@settings(max_examples=25)
@given(heads, layers, st.integers(1, 2), st.sampled_from(["\t", "   "]))
def test_every_step_has_the_bytes_and_the_cycles_of_the_text(
    tmp_path_factory: pytest.TempPathFactory, head: str, rows: Any, steps: int, gap: str
) -> None:
    rows = [*rows, ((1, "NONE", 0), (2, "NONE", 0), (3, "ALLREDUCE", 64), 5)]
    lines = [
        gap.join(["l", "-1", *(str(part) for work in row[:3] for part in work), str(row[3])])
        for row in rows
    ]
    path = tmp_path_factory.mktemp("text") / "w.txt"
    path.write_text("\n".join([head, str(len(rows)), *lines]))
    layout = lay_out(read_text(path, Dialect.ASTRA_SIM), dims=(2, 2))
    traces = layout.workload.traces(text_program(layout, steps=steps))
    works = [work for row in rows for work in row[:3] if work[1] != "NONE"]
    for trace in traces.values():
        assert sum(bytes_by_type(trace).values()) == steps * sum(size for _, _, size in works)
    computed = sum(n.duration_ns or 0 for n in traces[0].nodes if n.op_type not in (None, "update"))
    unneeded = rows[0][1][0] if layout.text.policy.value.startswith(("DATA", "HYBRID_DLRM")) else 0
    expected = sum(work[0] for row in rows for work in row[:3]) - unneeded
    assert computed == steps * expected * (layout.text.policy is not Policy.MICRO)
    assert not chakra_et.validate(traces, "astra-sim").count(Severity.ERROR)


# ---------------------------------------------------------------------------------------------
# Errors, and the command


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected a policy, the number of layers"),
        ("PARTLY\n1\na\n", "line 1: no policy 'PARTLY'. Known: MICRO, DATA"),
        ("DATA\nx\na\n", "line 2: the number of layers is 'x'"),
        ("DATA\n2\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n", "line 2: 2 layers are announced, 1 line"),
        ("DATA\n1\n\na -1 1 NONE 0\n", "line 4: 5 columns, not 12"),
        ("DATA\n1\na -1 x NONE 0 1 NONE 0 1 NONE 0 1\n", "line 3: the time of the forward is 'x'"),
        ("DATA\n1\na -1 1.5 NONE 0 1 NONE 0 1 NONE 0 1\n", "the time of the forward is '1.5'"),
        ("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 -3\n", "the time of the update is '-3'"),
        ("DATA\n1\na -1 1 NONE 0 1 SUM 0 1 NONE 0 1\n", "line 3: no collective 'SUM'"),
        ("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 ALLREDUCEALLTOALL 8 1\n", "ALLREDUCEALLTOALL"),
        (f"DATA\n1\na -1 1 NONE {10**30} 1 NONE 0 1 NONE 0 1\n", "more than 9007199254740992"),
        ("HYBRID_CUSTOMIZED\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1 MINE\n", "no policy 'MINE'"),
        ("HYBRID_CUSTOMIZED\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1 HYBRID_TRANSFORMER\n",
         "line 3: HYBRID_TRANSFORMER is not a policy of a layer"),
        ("HYBRID_DLRM 1\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n", "no layer 1: there are 1"),
        ("HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoints: 3 1 2\n1\na\n", "has 2 numbers, not 3"),
        ("HYBRID_TRANSFORMER_FWD_IN_BCKWD checkpoint_initiates: 1 0\n"
         "1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n", "no checkpoint before layer 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "w.txt"
    path.write_text(text)
    with pytest.raises(FormatError) as told:
        read_text(path)
    assert message in str(told.value)
    assert "w.txt: line " in str(told.value)


@pytest.mark.parametrize(
    ("head", "options", "message"),
    [
        ("DATA", {}, "does not state the number of ranks"),
        ("DATA", {"ranks": 6, "dims": (4, 2)}, "a network of 4x2 has not 6 ranks"),
        ("DATA", {"ranks": 1 << 30}, "more than 1048576"),
        ("HYBRID_DATA_MODEL", {"ranks": 8}, "needs two dimensions"),
        ("HYBRID_TRANSFORMER", {"ranks": 8}, "no model_parallel_NPU_group"),
        ("HYBRID_TRANSFORMER 3", {"ranks": 8}, "groups of 3 ranks do not fit into 8"),
        ("HYBRID_TRANSFORMER 2 ep: 2 pp: 2", {"ranks": 12}, "12 ranks are not a multiple of tp 2"),
        ("HYBRID_TRANSFORMER 2 ep: 2", {"dims": (4, 2)}, "know groups, no dimensions"),
    ],
)
def test_ranks_have_to_fit(
    tmp_path: Path, head: str, options: dict[str, Any], message: str
) -> None:
    path = tmp_path / "w.txt"
    path.write_text(f"{head}\n{LAYERS}")
    with pytest.raises(ChakraError, match=message):
        lay_out(read_text(path), **options)


def test_a_text_with_nothing_to_run_is_refused(make: Make) -> None:
    with pytest.raises(ChakraError, match="nothing is left to run"):
        make("DATA\n1\na -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 8 5\n", ranks=1)


def run(*words: str) -> str:
    result = CliRunner().invoke(generate_command, ["text", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_writes_a_set_and_tells_what_it_left_out(tmp_path: Path) -> None:
    path = tmp_path / "dlrm.txt"
    path.write_text(DLRM)
    told = run(str(path), "--ranks", "4", "-o", str(tmp_path / "set"))
    assert "HYBRID_DLRM, 8 layers, 4 ranks (all4), as astra-sim reads it" in told
    assert "left out: 1 x computed gradients of the first layer's input" in told
    trace = chakra_et.read(tmp_path / "set" / "trace.3.et")
    facts = json.loads(trace.metadata.get("workload"))
    assert (facts["kind"], facts["policy"], facts["clock_ghz"]) == ("text", "HYBRID_DLRM", 1.0)
    assert json.loads((tmp_path / "set" / "comm_groups.json").read_text()) == {"1": [0, 1, 2, 3]}


def test_json_counts_communication(tmp_path: Path) -> None:
    path = tmp_path / "simai.txt"
    path.write_text(SIMAI)
    told = json.loads(run(str(path), "--json"))
    assert told["grid"] == {"tp": 2, "ep": 2, "edp": 2, "pp": 2}
    assert [len(program["ranks"]) for program in told["programs"]] == [8, 8]
    assert {
        "phase": "forward", "type": "COMM_SEND", "group": "pp", "bytes": 4096, "count": 2,
    } in told["programs"][0]["communication"]  # fmt: skip


@pytest.mark.parametrize("words", [("--clock", "0"), ("--dims", "4xx"), ("--dims", "a")])
def test_options_are_checked(tmp_path: Path, words: tuple[str, str]) -> None:
    path = tmp_path / "dlrm.txt"
    path.write_text(DLRM)
    with pytest.raises(ChakraError):
        run(str(path), *words)
