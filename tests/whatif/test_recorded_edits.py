"""Edits of recordings: a late start, other lengths of tensors, another device."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import chakra
from edits import durations, edited, spans
from hypothesis import given
from hypothesis import strategies as st
from llm_plans import DENSE
from traces import coll, linked, node, trace
from truth.linked import linked_ranks
from truth.machine import play
from truth.program import Collective, Launch, Op, Program, Statement, SyncDevice

from chakra_et import ChakraError
from chakra_et.files import write
from chakra_et.kerneltimes import FEATURES, Key, Samples
from chakra_et.kerneltimes.files import write_samples
from chakra_et.model import EdgeKind, TraceSet
from chakra_et.whatif import ask, parse_edit
from chakra_et.workloads import Plan
from chakra_et.workloads.generate import generate


@given(st.integers(0, 400), st.integers(0, 1))
def test_a_rank_that_comes_late_holds_the_others_up(late_us: int, rank: int) -> None:
    def steps(late: int) -> list[Statement]:
        return [Op(2000), Launch(7, 2000, 2000 + 1000 * late, 0), Collective(30, 2000, 9000),
                SyncDevice(2000)]  # fmt: skip

    on_time = Program([steps(0), steps(0)])
    late = Program([steps(late_us if rank == 0 else 0), steps(late_us if rank == 1 else 0)])
    traces = linked_ranks(on_time, play(on_time))
    # Whether a kernel takes longer or begins later is the same to whoever waits for it.
    found = edited(traces, f"delay:name~gemm={late_us},{rank}")
    assert spans(found) == [run.span for run in play(late)]


def test_a_delay_of_no_time_changes_nothing_and_delays_add_up() -> None:
    program = Program([[Op(2000), Launch(7, 300, 9000, 100), SyncDevice(100)]])
    traces = linked_ranks(program, play(program))
    assert spans(edited(traces, "delay:name~gemm=0")) == spans(traces)
    twice = edited(traces, "delay:name~gemm=2", "delay:name~gemm=3")
    assert spans(twice) == spans(edited(traces, "delay:name~gemm=5")) == [spans(traces)[0] + 5000]
    with pytest.raises(ChakraError, match="there is no rank 7"):
        edited(traces, "delay:name~gemm=2,7")


def shaped(m: int, k: int, n: int) -> tuple[bytes, bytes, bytes]:
    return b"[]", f"[[{m},{k}],[{k},{n}]]".encode(), b'["Tensor(float)","Tensor(float)"]'


def products(*took: int) -> TraceSet:
    """Products of (64, 32) by (32, 16) on a thread, and a collective that knows no shape."""
    start, nodes = 0, []
    for place, ns in enumerate(took, 1):
        nodes.append(node(place, start=start, took=ns, name="aten::mm", is_cpu_op=True,
                          deps=(place - 1,) if place > 1 else (), kind=EdgeKind.PROGRAM,
                          category="cpu_op", inputs=shaped(64, 32, 16)))  # fmt: skip
        start += ns
    return TraceSet({0: trace(*nodes, coll(9, start=start, took=100, deps=(len(took),)))})


def features(m: int, k: int, n: int) -> list[float]:
    return [1, m, n, k, 2 * m * n * k, 4 * (m * k + k * n), np.nan]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Products on the host, and on a device that takes a tenth."""
    rows = [(features(64, 32, 16), 4000), (features(128, 32, 16), 7000),
            (features(64, 64, 16), 6000)]  # fmt: skip
    keys = [Key("aten::mm", "fp32", where) for where in ("host", "A100") for _ in rows]
    told = np.array([told for told, _ in rows] * 2).reshape(-1, len(FEATURES))
    ns = np.array([ns for _, ns in rows] + [ns // 10 for _, ns in rows], np.int64)
    ones = np.ones(len(ns), np.int64)
    path = tmp_path / "table.json"
    write_samples(Samples(keys, told, ["model"] * len(ns), ones, ns, ns), path)
    return path


def test_other_lengths_take_longer_by_what_the_table_says(table: Path) -> None:
    traces = products(4400, 3600)
    answer = ask(traces, [parse_edit(f"lengths=64:128,{table}")])
    assert durations(answer.after.traces)[:2] == [7700, 6300]
    (change,) = answer.changes
    assert (change.source, change.provenance) == ("table", {"recorded": 2})
    assert (change.nodes, change.before_ns, change.after_ns) == (2, 8000, 14_000)
    inputs = answer.after.traces[0].nodes[0].inputs
    assert inputs is not None
    assert inputs.shapes == b"[[128,32],[32,16]]"


def test_lengths_change_at_once_and_come_back(table: Path) -> None:
    traces = products(4000)
    swapped = edited(traces, f"lengths=64:32,32:64,{table}")
    back = edited(swapped, f"lengths=64:32,32:64,{table}")
    assert back[0].nodes[0].inputs == traces[0].nodes[0].inputs
    assert durations(back)[0] == pytest.approx(4000, abs=1)
    assert durations(edited(traces, f"lengths=64:64,16:16,7:9,32:32,{table}")) == [4000, 100]


def test_without_a_table_the_run_itself_tells() -> None:
    answer = ask(products(4400, 3600), [parse_edit("lengths=64:128")])
    assert answer.changes[0].provenance == {"extrapolated": 2}
    assert 8000 < answer.changes[0].after_ns <= 16_000


def summed(shapes: bytes, values: bytes = b"[]") -> TraceSet:
    """Two ranks that write a tensor of 64 x 32, and sum what is told by these texts."""
    made = []
    for _ in range(2):
        texts = (values, shapes, b'["Tensor(float)"]')
        written = (b'[[1,7,0,2048,4,"cpu"]]', b"[[64,32]]", b'["Tensor(float)"]')
        made.append(linked(
            [node(1, start=0, took=100, name="aten::mul", is_cpu_op=True, thread=1, inputs=written),
             coll(2, start=100, took=1000, size=8192, thread=2, inputs=texts)],
            [(2, 1, EdgeKind.DATA)],
        ))  # fmt: skip
    return TraceSet(dict(enumerate(made)))


FLAT = b'[[2,7,0,2048,4,"cpu"]]'


@pytest.mark.parametrize(
    ("shapes", "values", "after"),
    [(b"[[64,32]]", b'[[3,9,0,2048,4,"cpu"]]', b"[[96,32]]"), (b"[[2048]]", FLAT, b"[[3072]]")],
    ids=["by its own shape", "by what lies in its memory"],
)
def test_transfers_carry_as_much_more_as_what_they_are_made_of(
    shapes: bytes, values: bytes, after: bytes
) -> None:
    before = summed(shapes, values)
    made = edited(before, "lengths=64:96")
    for rank in made.values():
        moved = rank.nodes[1]
        assert (moved.comm_size, moved.duration_ns) == (12_288, 1500)
        assert moved.inputs is not None
        assert moved.inputs.shapes == after
    back = edited(made, "lengths=96:64")
    assert [rank.nodes[1].comm_size for rank in back.values()] == [8192, 8192]
    assert [rank.nodes[1].inputs for rank in back.values()] == [
        rank.nodes[1].inputs for rank in before.values()
    ]


def test_transfers_of_other_memory_stay() -> None:
    made = edited(summed(b"[[2048]]", b'[[2,8,0,2048,4,"cpu"]]'), "lengths=64:96")
    assert [rank.nodes[1].comm_size for rank in made.values()] == [8192, 8192]


def test_another_device_takes_what_its_table_says(table: Path) -> None:
    traces = products(4400, 3600)
    found = edited(traces, f"device={table}:host")
    assert durations(found) == [4000, 4000, 100]
    assert durations(edited(traces, f"device={table}")) == [400, 400, 100]


def test_a_generated_set_takes_what_a_table_of_recordings_says(tmp_path: Path) -> None:
    traces = generate(Plan(model=DENSE, global_batch=2, sequence=64, tp=2))
    key = Key("aten::mm", "bf16", "A100")
    lengths = [(m, k, n) for m in (16, 128) for k in (16, 128) for n in (16, 128)]
    told = np.array([features(*each) for each in lengths])
    ns = np.array([m * k * n for m, k, n in lengths], np.int64)
    one = np.ones(len(ns), np.int64)
    write_samples(Samples([key] * len(ns), told, ["m"] * len(ns), one, ns, ns), tmp_path / "t.json")
    found, change = parse_edit(f"device={tmp_path / 't.json'}").apply(TraceSet(traces))
    assert change is not None
    assert set(change.provenance) == {"model"}
    (node,) = found[0].nodes.where(name="attention.qkv")[:1]
    assert node.duration_ns == pytest.approx(64 * 64 * 64, rel=0.01)


@pytest.mark.parametrize(
    ("text", "told"),
    [("lengths=64", "expected lengths"), ("lengths=64:0", "expected lengths"),
     ("lengths=a:b,c", "expected lengths"), ("lengths=77:78", "no tensor has a length 77"),
     ("delay:name~mm=1,2,3", "expected up to 2 numbers"), ("device=missing.json", "missing.json")],
)  # fmt: skip
def test_what_cannot_be_done_is_refused(text: str, told: str) -> None:
    with pytest.raises(ChakraError, match=told):
        edited(products(4000), text)


def test_a_table_of_several_devices_asks_for_one(tmp_path: Path) -> None:
    one = np.ones(2, np.int64)
    keys = [Key("aten::mm", "fp32", name) for name in ("A100", "H100")]
    told = np.array([features(1, 1, 1)] * 2)
    write_samples(Samples(keys, told, ["m", "m"], one, one, one), tmp_path / "t.json")
    with pytest.raises(ChakraError, match="several devices: A100, H100"):
        parse_edit(f"device={tmp_path / 't.json'}")


def test_from_recordings_to_a_table_to_another_device(data: Path, tmp_path: Path) -> None:
    run = data / "torch213/mlp_1step"
    fitted = chakra("fit", run, "-o", tmp_path / "table.json", "--top", "3")
    assert fitted.code == 0, fitted.output
    assert "one model: the error on another one cannot be told" in fitted.words
    assert "aten::" in fitted.words
    again = chakra("fit", run, run, "-o", tmp_path / "two.json")
    assert "each of 2 models" not in again.words
    done = chakra("whatif", run, "--set", f"device={tmp_path / 'table.json'}")
    assert done.code == 0, done.output
    assert "recorded" in done.words
    write(products(0)[0], tmp_path / "t.0.et")
    empty = chakra("fit", tmp_path / "t.0.et", "-o", tmp_path / "no.json")
    assert (empty.code, "no calls with times" in empty.errors) == (2, True)
    assert not (tmp_path / "no.json").exists()
