"""The grid of a job, and records of ndtimeline: who is slow, along which axis."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import chakra
from hypothesis import given
from hypothesis import strategies as st
from llm_plans import DENSE
from traces import coll, node, trace

from chakra_et.analyze import Job, Work
from chakra_et.analyze.grid import Places, grid_rows, grid_table, places_of
from chakra_et.analyze.ndtimeline import is_ndtimeline, read_segments
from chakra_et.analyze.tables import TABLES
from chakra_et.build.grid import Grid
from chakra_et.definitions import Kind
from chakra_et.errors import ChakraError, FormatError
from chakra_et.files import write
from chakra_et.model import EdgeKind, TraceSet
from chakra_et.workloads import Plan
from chakra_et.workloads.generate import generate

HOST: dict[str, Any] = {"is_cpu_op": True, "thread": 1}


@pytest.mark.parametrize("degrees", [{"tp": 2, "dp": 2, "pp": 2}, {"tp": 4}, {"dp": 4, "pp": 2}])
@pytest.mark.parametrize("told", [True, False])
def test_coordinates_are_those_of_the_plan(degrees: dict[str, int], told: bool) -> None:
    traces = generate(Plan(model=DENSE, global_batch=8, sequence=64, **degrees))
    for made in traces.values():
        if not told:
            made.metadata.set("grid", Kind.STRING, None)
    places = places_of(traces)
    grid = Grid(degrees)
    assert set(places.axes) == set(degrees)
    for axis, found in places.axes.items():
        assert found == {rank: grid.coordinate(axis, rank) for rank in range(grid.world_size)}
        assert (places.evidence[axis] == "metadata") == told
    assert places.of(0) == " ".join(f"{axis}0" for axis in places.axes)


@given(st.integers(0, 7), st.sampled_from(["tp", "dp", "pp"]))
def test_a_slow_place_shows_along_its_axis_alone(seed: int, axis: str) -> None:
    grid = Grid({"tp": 2, "dp": 3, "pp": 2})
    ranks = range(grid.world_size)
    axes = {name: {r: grid.coordinate(name, r) for r in ranks} for name in grid.axes}
    slow = seed % grid.axes[axis]
    host = np.array([[1200 if axes[axis][r] == slow else 1000] * 4 for r in ranks], np.int64)
    rows = list(grid_rows(Work(tuple(ranks), (1, 2, 3, 4), {"host": host}), Places(axes, {})))
    assert sum(row.ranks for row in rows if row.axis == "rank") == grid.world_size
    for name in grid.axes:
        along = {row.place: row.mean_ns for row in rows if row.axis == name}
        assert len(along) == grid.axes[name]
        if name == axis:
            assert max(along, key=lambda place: along[place]) == str(slow)
        else:
            assert len(set(along.values())) == 1
    assert len(grid_table(rows, Places(axes, {}))) == len(rows)


def job_of_eight(slow: int, steps: tuple[int, ...]) -> TraceSet:
    """Ten steps on eight ranks, one of which is 10 % slower in some; all meet at the end."""
    random = np.random.default_rng(7)
    traces = {}
    for rank in range(8):
        nodes, at = [], 0
        for step in range(10):
            took = int(10_000_000 * (1 + random.normal(0, 0.003)))
            took = took * 11 // 10 if rank == slow and step in steps else took
            first = 3 * step + 1
            before = {"deps": (first - 1,), "kind": EdgeKind.PROGRAM} if step else {}
            nodes += [
                node(first, start=at, took=10, name=f"ProfilerStep#{step}", **before, **HOST,
                     inclusive_ns=12_000_000, category="user_annotation"),
                node(first + 1, start=at + 10, took=took, name="forward", deps=(first,),
                     kind=EdgeKind.PROGRAM, **HOST),
                coll(first + 2, start=at + 10 + took, took=12_000_000 - took - 10,
                     deps=(first + 1,), kind=EdgeKind.PROGRAM),
            ]  # fmt: skip
            at += 12_000_000
        traces[rank] = trace(*nodes, rank=rank, world=8, groups={"0": tuple(range(8))})
    return TraceSet(traces)


def test_a_host_that_is_slower_in_3_of_10_steps_is_named_from_its_files(tmp_path: Path) -> None:
    for rank, made in job_of_eight(5, (2, 4, 9)).items():
        write(made, tmp_path / f"run.{rank}.et")
    done = chakra("analyze", tmp_path, "stragglers", "--format", "json")
    (found,) = json.loads(done.output)
    assert (found["rank"], found["what"], found["steps"]) == (5, "host", "2 4 9")
    assert found["excess_share"] == pytest.approx(0.1, abs=0.02)
    shown = chakra("analyze", tmp_path, "grid", "--top", "0")
    assert shown.code == 0, shown.output
    assert "transfers" in shown.words


def test_ranks_that_are_missing_lie_nowhere() -> None:
    few = TraceSet({rank: made for rank, made in job_of_eight(0, ()).items() if rank != 3})
    with pytest.raises(ChakraError, match="how they lie cannot be told"):
        TABLES["grid"](Job.of(few))


def record(rank: int, step: int, took: list[float], metric: str = "forward-compute") -> Any:
    """A record as ndtimeline's handlers have it, of 2 replicas with 2 stages of 2 ranks."""
    return {
        "ts": 1700000000, "rank": rank, "metric": metric, "iteration": 0, "step": step,
        "value": sum(took) / len(took), "start_ts": [1.7e9 + i for i in range(len(took))],
        "duration": took, "model_chunk": 0, "stage": rank // 4, "dp_rank": rank // 2 % 2,
        "tp_rank": rank % 2, "ip": f"10.0.0.{rank // 4}", "role": 0, "trial": "0", "run_id": 0,
    }  # fmt: skip


def slow(rank: int, step: int) -> float:
    return 0.011 if rank == 6 and step in (1, 3, 8) else 0.010 + 0.00001 * (rank * step % 3)


def as_records(folder: Path) -> Path:
    lines = [
        json.dumps(record(r, s, [slow(r, s), slow(r, s)])) for r in range(8) for s in range(10)
    ]
    (folder / "records.jsonl").write_text("\n".join(lines) + "\n")
    return folder / "records.jsonl"


def as_list(folder: Path) -> Path:
    items = [record(r, s, [slow(r, s), slow(r, s)]) for r in range(8) for s in range(10)]
    (folder / "records.json").write_text(json.dumps(items))
    return folder / "records.json"


def as_log(folder: Path) -> Path:
    """What the raw handler logs: all steps of a metric in one line."""
    lines = []
    for r in range(8):
        took = [slow(r, s) for s in range(10) for _ in range(2)]
        topo = (f"rank={r}, dp_rank={r // 2 % 2}, ddp_rank=0, tp_rank={r % 2}, pp_rank={r // 4}, "
                f"local_rank={r % 4}, ip='10.0.0.{r // 4}', dp_size=2, world_size=8")  # fmt: skip
        lines.append(
            f"2024-05-01 12:00:00,123 - metric_name: forward-compute, elapsed: {sum(took)}, "
            f"recent_elapsed_raw_parts: {took}, recent_since_start_raw_parts: "
            f"{[1.7e9 + i for i in range(20)]}, tags: {[{} for _ in took]}, "
            f"step_range: range(0, 10), world_info: WorldInfo: TopoInfo({topo}) "
            "TrainingInfo(role_id=0, trial_id=0, run_id=0) {}"
        )
    (folder / "timeline_run0_raw.log").write_text("\n".join(lines))
    return folder / "timeline_run0_raw.log"


def as_timeline(folder: Path) -> Path:
    events: list[Any] = [
        {"name": "forward-compute", "cat": "forward-compute", "pid": r // 2 % 2, "tid": 10 * r,
         "args": {"rank": r, "step": s, "tp": r % 2, "pp": r // 4}, "ts": 1.7e15 + i,
         "dur": slow(r, s) * 1e6, "ph": "X"}
        for r in range(8) for s in range(10) for i in range(2)
    ]  # fmt: skip
    events.append({"name": "process_name", "pid": 0, "ph": "M", "args": {"name": "dp rank[0]"}})
    (folder / "trace_step0_9").write_text(json.dumps(events))
    return folder / "trace_step0_9"


@pytest.mark.parametrize("make", [as_records, as_list, as_log, as_timeline])
def test_all_forms_of_records_name_the_slow_rank(tmp_path: Path, make: Any) -> None:
    path = make(tmp_path)
    assert is_ndtimeline(path)
    segments = read_segments(path)
    assert segments.ns.sum() == pytest.approx(
        sum(round(2e9 * slow(r, s)) for r in range(8) for s in range(10)), abs=200
    )
    (found,) = segments.stragglers()
    assert (found.rank, found.what, found.steps) == (6, "forward-compute", (1, 3, 8))
    assert {axis: sorted(set(p.values())) for axis, p in segments.places.axes.items()} == {
        "tp": [0, 1], "dp": [0, 1], "pp": [0, 1],
    }  # fmt: skip
    grid = segments.grid()
    stage = [row for row in grid.as_dicts() if row["what"] == "forward-compute of pp1"]
    slowest = max((r for r in stage if r["axis"] == "rank"), key=lambda r: r["mean_ns"])
    assert slowest["place"] == "6 tp0 dp1 pp1"


def test_the_command_names_rank_and_host(tmp_path: Path) -> None:
    as_records(tmp_path)
    (tmp_path / "notes.txt").write_text("nothing")
    done = chakra("analyze", tmp_path, "stragglers", "--format", "json")
    assert json.loads(done.output)[0]["host"] == "10.0.0.1"
    assert "left out, as no records of ndtimeline: notes.txt" in done.errors
    refused = chakra("analyze", tmp_path, "skew")
    assert (refused.code, "do not tell skew" in refused.errors) == (2, True)


def test_steps_are_those_of_tags_where_these_tell(tmp_path: Path) -> None:
    path = as_log(tmp_path)
    tags = [{"_inner_global_step": 5 + place // 2} for place in range(20)]
    path.write_text(path.read_text().replace(str([{} for _ in tags]), str(tags)))
    assert sorted(set(read_segments(path).step.tolist())) == list(range(5, 15))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [("step_range: range(0, 10)", "step_range: range(0, 3)", "20 segments in 3 steps"),
     ("rank=0,", "rank=x,", "no record"), ("elapsed: ", "elapsed ", "no record"),
     ("recent_elapsed_raw_parts: [0", "recent_elapsed_raw_parts: [1e300, 0", "no record"),
     ("tags: [{}", "tags: [{'_inner_global_step': 1}", "1 of 20 segments tell their step")],
)  # fmt: skip
def test_what_is_no_record_is_refused_with_its_place(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    path = as_log(tmp_path)
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(FormatError, match=f"(?s)record 1.*|{told}") as caught:
        read_segments(path)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ['{"metric": "a", "start_ts": [1.0], "duration": [], "rank": 0, "step": 1}',
     '{"metric": "a", "start_ts": [1e300], "duration": [1.0], "rank": 0, "step": 1}',
     '{"metric": "a", "start_ts": [1.0], "rank": 0, "step": 1}', '[{"metric": 1, "start_ts": 2}]',
     '[{"ph": "X", "args": {"rank": 0}, "name": "a", "ts": 1, "dur": 1, "pid": 0}]',
     '[{"ph": "X", "args": {"rank": 0, "step": 1%s}, "name": "a", "ts": 1, "dur": 1, "pid": 0}]'
     % ("0" * 30),
     '{"metric": "a", "start_ts": [1.0], "duration": [1.0], "rank": 0, "step": 1%s}' % ("0" * 30)],
)  # fmt: skip
def test_broken_records_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "records.json"
    path.write_text(text)
    with pytest.raises(FormatError):
        read_segments(path)


def test_other_files_are_no_records(tmp_path: Path, data: Path) -> None:
    assert not is_ndtimeline(data / "torch213/mlp_1step")
    assert not is_ndtimeline(tmp_path / "missing")
    with pytest.raises(ChakraError, match="no segments"):
        read_segments(tmp_path)
