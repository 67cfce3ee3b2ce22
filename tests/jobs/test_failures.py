"""Ranks that cannot be converted are named; all others are whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import chakra
from many_ranks import FIRST_PID, run_of, traces
from places import names_in

import chakra_et


def damaged(run: Path, rank: int, content: bytes) -> Path:
    """A run in which nothing can be read of the profile of a rank."""
    path = run / f"node_{FIRST_PID + rank}.1700000000000000{rank:03}.pt.trace.json"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "content",
    [b"", b"\0" * 64, b"\x1f\x8b\x08garbage", b'{"schemaVersion": 1, "traceEvents": 5}'],
    ids=["empty", "zeros", "damaged gzip", "no records"],
)
def test_a_damaged_rank_is_named_and_the_others_are_there(tmp_path: Path, content: bytes) -> None:
    right = chakra("convert", run_of(tmp_path / "right", 4), "-o", tmp_path / "whole")
    assert right.code == 0
    bad = damaged(run_of(tmp_path / "run", 4), 2, content)
    report = tmp_path / "report.json"
    done = chakra("convert", tmp_path / "run", "-o", tmp_path / "out", "--report", report)
    assert done.code == 1
    assert "error: 1 of 4 ranks could not be converted:" in done.errors
    assert bad.name in done.errors
    whole = traces(tmp_path / "whole")
    del whole["trace.2.et"]
    assert traces(tmp_path / "out") == whole
    told = json.loads(report.read_text())
    assert len(told["conversions"]) == 3
    (failure,) = told["failures"]
    assert bad.name in failure["error"]


def test_the_host_trace_of_a_damaged_profile_is_no_rank_of_its_own(tmp_path: Path) -> None:
    names = {"device": "rank{rank}_trace.json", "host": "host_rank{rank}.json"}
    run = run_of(tmp_path / "run", 3, **names)
    (run / "rank1_trace.json").write_bytes(b"\0" * 64)
    done = chakra("convert", run, "-o", tmp_path / "out")
    assert done.code == 1
    assert "rank1_trace.json" in done.errors
    assert "(with host_rank1.json)" in done.errors
    assert names_in(tmp_path / "out") == ["trace.0.et", "trace.2.et"]


def test_a_file_of_another_name_is_no_rank(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 2)
    (run / "log.txt").write_text("hello")
    done = chakra("convert", run, "-o", tmp_path / "out")
    assert done.code == 0
    assert "skipped 1 file: log.txt" in done.words


def test_if_no_rank_can_be_converted_nothing_is_written(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 2)
    for rank in range(2):
        damaged(run, rank, b'{"schemaVersion": 1, "traceEvents": 5}')
        (run / f"et_{FIRST_PID + rank}.json").unlink()
    done = chakra("convert", run, "-o", tmp_path / "out")
    assert done.code == 2
    assert not (tmp_path / "out").exists()


def test_ranks_without_a_number_keep_theirs_when_one_before_them_fails(tmp_path: Path) -> None:
    """Profiles that tell no rank are numbered in the order of their names."""
    from many_ranks import rank_files

    for folder in ("whole", "run"):
        for rank in range(3):
            rank_files(tmp_path / folder, rank, host=None)
    bad = damaged(tmp_path / "run", 1, b'{"schemaVersion": 1, "traceEvents": 5}')
    whole, found = (
        chakra_et.convert_files(tmp_path / name, tmp_path / f"{name}.out", keep_going=True)
        for name in ("whole", "run")
    )
    assert [failure.files for failure in found.failures] == [(bad.name,)]
    assert len(whole) == 3
    right = traces(tmp_path / "whole.out")
    assert right.pop("trace.1.et")
    assert traces(tmp_path / "run.out") == right


def test_a_window_is_cut_by_several_workers_too(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 2)
    done = chakra("convert", run, "-o", tmp_path / "out", "--annotation", "aten::op0_1", "-q")
    assert done.code == 1, "the other rank has no such annotation"
    assert names_in(tmp_path / "out") == ["trace.0.et"]
    again = tmp_path / "again"
    chakra("convert", run, "-o", again, "--annotation", "aten::op0_1", "--jobs", 2, "-q")
    assert traces(again) == traces(tmp_path / "out")


def test_a_host_trace_that_tells_no_rank_gets_a_number_that_is_free(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 4)
    (profile,) = run.glob(f"*{FIRST_PID + 1}*.pt.trace.json")
    profile.unlink()
    found = chakra_et.convert_files(run, tmp_path / "out", jobs=1)
    assert sorted(traces(tmp_path / "out")) == [f"trace.{rank}.et" for rank in range(4)]
    assert [conversion.report.rank for conversion in found] == [0, None, 2, 3]
