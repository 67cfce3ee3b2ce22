"""Real traces: silent while sound; broken at random places, the right rule speaks, and its kin."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import numpy as np
import pytest
from mutations import MUTATIONS, Mutation, NotHereError, mutated

from chakra_et import convert_directory, read
from chakra_et.conversion import trace_set
from chakra_et.definitions import NodeType
from chakra_et.files import write
from chakra_et.model import Trace, TraceSet
from chakra_et.passes.edit import copied
from chakra_et.validators import RULES, validate

RUNS = ("dlrm8", "torch213/ddp_2rank", "et/ring8", "et/micro4/all_gather", "et/micro4/all_reduce")
ROUNDS = 3
"""How often a run is broken in each way."""


@cache
def real(data: Path, name: str) -> TraceSet:
    path = data / name
    if path.is_dir() and not list(path.glob("*.et")):
        return trace_set(convert_directory(path, None))
    files = sorted(path.glob("*.et")) or sorted(path.parent.glob(f"{path.name}.*.et"))
    traces = {int(file.name.split(".")[-2]): read(file) for file in files}
    return TraceSet(traces)


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("profile", ["core", "mlc-chakra"])
def test_sound_runs(data: Path, name: str, profile: str) -> None:
    result = validate(real(data, name), profile)
    assert result.rules <= ({"ET112", "ET801"} if profile == "mlc-chakra" else set())


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


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.rule}-{m.change.__name__}")
def test_the_right_rule_speaks(data: Path, mutation: Mutation) -> None:
    hit = 0
    rule = RULES[mutation.rule]
    for name in RUNS:
        traces = real(data, name)
        before = validate(traces).rules
        for seed in range(ROUNDS):
            chance = Random(f"{mutation.rule}{name}{seed}")
            rank = chance.choice(list(traces))
            try:
                broken, node = mutated(traces, rank, mutation, chance)
            except NotHereError:
                continue
            result = validate(broken)
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
