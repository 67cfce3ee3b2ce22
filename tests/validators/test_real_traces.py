"""Real traces: silent while sound; broken at random places, the right rule speaks, and its kin."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import more_rule_mutations  # noqa: F401  (adds to MUTATIONS)
import numpy as np
import pytest
from rule_mutations import MUTATIONS, Mutation, NotHereError, mutated

from chakra_et import convert, convert_directory, read
from chakra_et.conversion import trace_set
from chakra_et.definitions import NodeType
from chakra_et.files import write
from chakra_et.model import Trace, TraceSet
from chakra_et.passes import cure
from chakra_et.passes.edit import copied
from chakra_et.validators import RULES, validate

RUNS = ("dlrm8", "torch213/ddp_2rank", "et/ring8", "et/micro4/all_gather", "et/micro4/all_reduce")
PROFILES = " without host traces"
ROUNDS = 3
"""How often a run is broken in each way."""


@cache
def real(data: Path, name: str) -> TraceSet:
    """What comes of a recording; of its profiles alone where the name ends so."""
    if name.endswith(PROFILES):
        profiles = sorted((data / name.removesuffix(PROFILES)).glob("device.*"))
        return trace_set([convert(device=path) for path in profiles])
    path = data / name
    if path.is_dir() and not list(path.glob("*.et")):
        return trace_set(convert_directory(path, None))
    if path.is_file():
        pair = {"host": path} if path.parent.name == "host_et" else {"device": path}
        return trace_set([convert(**pair)])
    files = sorted(path.glob("*.et")) or sorted(path.parent.glob(f"{path.name}.*.et"))
    traces = {int(file.name.split(".")[-2]): read(file) for file in files}
    return TraceSet(traces)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("profile", ["core", "mlc-chakra"])
def test_sound_runs(data: Path, name: str, profile: str) -> None:
    result = validate(real(data, name), profile)
    assert result.rules <= ({"ET112", "ET801"} if profile == "mlc-chakra" else set())


CONVERTED = {
    "torchrec4": {"ET205", "ET206", "ET304"},
    f"dlrm8{PROFILES}": set(),
    "simple_add": set(),
    "resnet_rfid": set(),
    "kineto/bert_h100.json.gz": set(),
    "kineto/bert_mi300x.json.gz": set(),
    "kineto/cpu_only.json.gz": set(),
    "kineto/cuda_sync_a100.json.gz": set(),
    "kineto/cudagraph_a100.json.gz": set(),
    "kineto/event_sync.json.gz": set(),
    "kineto/gpu_annotations.json.gz": set(),
    "kineto/gpu_only_mi210.json.gz": set(),
    "kineto/legacy_v100.json.gz": set(),
    "kineto/rank_not_found.json.gz": set(),
    "kineto/sglang_decode_mi300x.json.gz": set(),
    "kineto/torch_compile_mi300x.json.gz": set(),
    "kineto/train_mi250.json.gz": set(),
    "host_et/allgather_1.0.2.json.gz": {"ET303"},
    "host_et/resnet_rank1_1.1.0.json.gz": {"ET303"},
    "host_et/torch_compile_1.1.1.json.gz": set(),
}
"""What `core` says of each, and it is true: a profile without shapes does not know sizes (ET206),
nor what was launched before it (ET205); a clock is behind (ET304); a host trace alone has no
durations (ET303)."""


@pytest.mark.parametrize("name", CONVERTED)
def test_what_is_said_of_real_recordings_is_true(data: Path, name: str) -> None:
    assert rules_of(name, "core", data) == CONVERTED[name]


@pytest.mark.parametrize("name", [*CONVERTED, *RUNS[:2], "torch213/tp_2rank"])
def test_our_own_output_has_no_errors(data: Path, name: str) -> None:
    traces = real(data, name)
    assert validate(traces).exit_code() == 0
    errors = {
        o.rule.id for o in cure(traces, "astra-sim").left.outcomes if o.severity.label == "error"
    }
    # Some are of one rank of a larger run, which a simulator cannot run alone.
    assert errors == ({"ET501"} if (traces.world_size or 0) > len(traces) else set())


def test_waits_that_were_recorded_are_no_regress_of_the_clock(data: Path) -> None:
    # A call that waits for the device is made before the work that it waits for ends.
    for name in ("simple_add", "kineto/gpu_only_mi210.json.gz", "kineto/cuda_sync_a100.json.gz"):
        assert "ET307" not in rules_of(name, "replay", data)


def test_a_profile_with_shapes_tells_sizes_as_a_host_trace_does(data: Path) -> None:
    alone, pairs = real(data, f"dlrm8{PROFILES}"), real(data, "dlrm8")
    for rank, trace in pairs.items():
        facts = [
            [(n.comm_type, n.comm_size, n.pg_name) for n in t.nodes.where(type=NodeType.COMM_COLL)]
            for t in (trace, alone[rank])
        ]
        assert facts[0] == facts[1]
        assert len(facts[0]) == 8


def test_a_kernel_of_unknown_type_may_be_no_collective_of_its_group(data: Path) -> None:
    """Three of four ranks show a kernel from before the window, of which no file tells anything."""
    traces = real(data, "torchrec4")
    result = validate(traces)
    assert result["ET205"].count == 3
    assert "ET502" not in result.rules


def test_where_ranks_part_is_told_where_they_differ(data: Path) -> None:
    traces = {rank: copied(trace) for rank, trace in real(data, "dlrm8").items()}
    last = traces[2].nodes.where(type=NodeType.COMM_COLL)[-1]
    traces[2].nodes.type[last.row] = NodeType.COMP
    (finding,) = validate(TraceSet(traces))["ET502"].findings
    assert finding.rank == 2
    assert "part at ordinal 7: nothing more (rank 2)" in finding.evidence


@pytest.mark.parametrize("name", ["et/ring8", "et/micro4"])
@pytest.mark.parametrize("profile", ["core", "astra-sim", "mlc-chakra", "replay"])
def test_sound_files(data: Path, name: str, profile: str) -> None:
    # The data may lie where nobody may write; that is no fault of the files.
    assert validate(data / name, profile).rules <= {"ET009"}


def test_broken_graph(data: Path) -> None:
    result = validate(data / "et/broken_graph.0.et.gz")
    wanted = {
        "ET102": 1277,
        "ET103": 383,
        **dict.fromkeys(("ET205", "ET206", "ET212", "ET219"), 14),
    }
    assert {rule: result[rule].count for rule in wanted} == wanted
    assert result.rules == {*wanted, "ET105", "ET106"}


@cache
def rules_of(name: str, profile: str, data: Path) -> set[str]:
    return validate(real(data, name), profile).rules


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.rule}-{m.change.__name__}")
def test_the_right_rule_speaks(data: Path, mutation: Mutation) -> None:
    hit = 0
    rule = RULES[mutation.rule]
    for name in RUNS:
        traces = real(data, name)
        before = rules_of(name, mutation.profile, data)
        if rule.id in before:
            continue
        for seed in range(ROUNDS):
            chance = Random(f"{mutation.rule}{name}{seed}")
            rank = chance.choice(list(traces))
            try:
                broken, node = mutated(traces, rank, mutation, chance)
            except NotHereError:
                continue
            result = validate(broken, mutation.profile)
            hit += 1
            spoke = result.rules - before
            assert rule.id in spoke, f"{name}, rank {rank}, node {node}"
            assert spoke <= {rule.id} | rule.kin, f"{name}, rank {rank}, node {node}"
            if node is not None:
                places = {(f.rank, f.node) for f in result[rule.id].findings}
                assert (rank, node) in places
    assert hit


def test_a_ring_in_which_everybody_receives_first(data: Path) -> None:
    traces = {rank: copied(trace) for rank, trace in real(data, "et/ring8").items()}
    step = Random(1).randrange(7)
    for trace in traces.values():
        types = trace.nodes.type
        send = np.flatnonzero(types == NodeType.COMM_SEND)[step]
        receive = np.flatnonzero(types == NodeType.COMM_RECV)[step]
        ids = trace.nodes.id
        ids[send], ids[receive] = ids[receive], ids[send]
        order = np.argsort(ids)
        swapped = Trace(trace.nodes.take(order), trace.edges, trace.metadata)
        trace.nodes, trace.edges = swapped.nodes, swapped.edges
    result = validate(TraceSet(traces))
    assert result.rules == {"ET510"}
    assert "rank 7" in result["ET510"].findings[0].evidence


def test_types_shifted_as_a_fork_shifts_them(data: Path) -> None:
    traces = {rank: copied(trace) for rank, trace in real(data, "et/ring8").items()}
    for trace in traces.values():
        trace.nodes.type += 1
    result = validate(TraceSet(traces))
    assert result["ET218"].count == len(traces)


@pytest.mark.parametrize("name", ["et/ring8", "torch213/ddp_2rank"])
def test_damaged_files(data: Path, tmp_path: Path, name: str) -> None:
    rank, trace = next(iter(real(data, name).items()))
    path = tmp_path / f"trace.{rank}.et"
    write(trace, path)
    whole = path.read_bytes()
    chance = Random(name)
    for _ in range(5):
        path.write_bytes(whole[: -chance.randrange(1, 40)])
        assert validate(path).rules - {"ET106", "ET102"} <= {"ET002", "ET501"}
        assert "ET002" in validate(path).rules
        path.write_bytes(whole + bytes(chance.randrange(1, 9)))
        assert "ET008" in validate(path).rules <= {"ET008"} | RULES["ET008"].kin
