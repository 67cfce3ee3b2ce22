"""A run goes on where it was ended, whenever that was: equal to one that nothing disturbed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from command import chakra
from many_ranks import FIRST_PID, run_of, traces
from places import EXAMPLES, names_in
from recordings import Profile

import chakra_et
from chakra_et import ChakraError
from chakra_et.jobs import job
from chakra_et.jobs import run as jobs
from chakra_et.jobs.remote_parts import parts_of
from chakra_et.run_directory import sha256_of

RANKS = 12


class KilledError(BaseException):
    """What no handler of the program expects."""


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first file of each pair that is converted, as it comes."""
    seen: list[str] = []
    real = job.convert_pair

    def counting(pair: Any, options: Any) -> Any:
        seen.append(pair.files[-1].name)
        return real(pair, options)

    monkeypatch.setattr(job, "convert_pair", counting)
    return seen


def convert(run: Path, out: Path, **options: Any) -> dict[str, bytes]:
    chakra_et.convert_directory(run, out, **{"jobs": 1, "resume": True, **options})
    return traces(out)


@contextmanager
def ended_after(count: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Within it, the program ends when so many files have appeared under their names."""
    real: Callable[..., Any] = Path.replace
    left = [count]

    def replace(self: Path, target: Any) -> Any:
        if left[0] == 0:
            raise KilledError
        left[0] -= 1
        return real(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replace)
        yield


def test_a_run_that_is_killed_twice_and_resumed_equals_one_that_was_not(tmp_path: Path) -> None:
    """By SIGKILL, with a damaged rank among them: it is named, and all others are there."""
    run = run_of(tmp_path / "run", RANKS)
    (run / f"node_{FIRST_PID + 7}.1700000000000000007.pt.trace.json").write_bytes(b"\0" * 100)
    undisturbed = chakra("convert", run, "-o", tmp_path / "whole", "--jobs", 1)
    words = ["convert", run, "-o", tmp_path / "killed", "--jobs", 2, "--resume"]
    for done in (1, 6):
        process = subprocess.Popen([sys.executable, "-m", "chakra_et.cli", *map(str, words)])
        while len(list((tmp_path / "killed").glob(".chakra-et/trace/*/record"))) < done:
            time.sleep(0.005)
            assert process.poll() is None, "it was not killed in time"
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert traces(tmp_path / "killed") == {}
    resumed = chakra(*words, "--jobs", 1)
    assert (undisturbed.code, resumed.code) == (1, 1)
    assert len(traces(tmp_path / "whole")) == RANKS - 1
    assert traces(tmp_path / "killed") == traces(tmp_path / "whole")
    for ended in (undisturbed, resumed):
        assert "1 of 12 ranks could not be converted" in ended.errors
        assert f"node_{FIRST_PID + 7}.1700000000000000007.pt.trace.json" in ended.errors


@pytest.mark.parametrize("count", range(15))
def test_an_end_at_any_point_leaves_nothing_that_is_half(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three ranks: a trace and a record of each, then names in records, ranks and manifest."""
    run = run_of(tmp_path / "run", 3)
    right = convert(run, tmp_path / "right")
    with ended_after(count, monkeypatch), suppress(KilledError):
        convert(run, tmp_path / "out")
    assert convert(run, tmp_path / "out") == right
    assert not list(tmp_path.glob("out/.chakra-et/trace/*/*.et"))


def test_nothing_that_was_done_is_done_again(
    tmp_path: Path, converted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path / "run", 3)
    with ended_after(3, monkeypatch), pytest.raises(KilledError):
        convert(run, tmp_path / "out")
    assert len(converted) == 2, "two traces and one record were written"
    convert(run, tmp_path / "out")
    assert converted[1] == converted[2], "the second rank had no record"
    assert len(converted) == 4
    convert(run, tmp_path / "out")
    assert len(converted) == 4, "the run had come to its end"
    convert(run, tmp_path / "out", resume=False)
    assert len(converted) == 7


def test_changed_files_and_options_are_converted_anew(tmp_path: Path, converted: list[str]) -> None:
    run = run_of(tmp_path / "run", 3)
    convert(run, tmp_path / "out")
    changed = run / f"et_{FIRST_PID + 1}.json"
    changed.write_text(changed.read_text().replace("aten::op1_2", "aten::other"))
    profile = run / f"node_{FIRST_PID + 1}.1700000000000000001.pt.trace.json"
    profile.write_text(profile.read_text().replace("aten::op1_2", "aten::other"))
    del converted[:]
    assert b"aten::other" in convert(run, tmp_path / "out")["trace.1.et"]
    assert converted == [profile.name]
    convert(run, tmp_path / "out", strict=True)
    assert len(converted) == 4


def test_a_damaged_trace_is_made_again(tmp_path: Path, converted: list[str]) -> None:
    run = run_of(tmp_path / "run", 3)
    right = convert(run, tmp_path / "out")
    (tmp_path / "out" / "trace.1.et").write_bytes(right["trace.1.et"][:-1])
    (tmp_path / "out" / "trace.2.et").unlink()
    del converted[:]
    assert convert(run, tmp_path / "out") == right
    assert len(converted) == 2


def test_a_rank_that_others_tell_something_is_resumed_as_well(
    tmp_path: Path, converted: list[str]
) -> None:
    """Over gloo, ranks give each other groups: their conversions are made twice."""
    right = convert(EXAMPLES / "ddp_2rank", tmp_path / "right", resume=False)
    first = len(converted)
    convert(EXAMPLES / "ddp_2rank", tmp_path / "out")
    del converted[:]
    assert convert(EXAMPLES / "ddp_2rank", tmp_path / "out") == right
    assert converted == []
    (tmp_path / "out" / "trace.0.et").unlink()
    assert convert(EXAMPLES / "ddp_2rank", tmp_path / "out") == right
    assert 1 <= len(converted) < first


def test_an_interruption_keeps_what_is_done_and_an_error_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path / "run", 2)
    with ended_after(2, monkeypatch), pytest.raises(KilledError):
        convert(run, tmp_path / "out")
    assert parts_of(tmp_path / "out", "trace").any_done()
    (tmp_path / "out" / "trace.9.et").write_bytes(b"somebody's")
    with pytest.raises(ChakraError, match="files of another run"):
        convert(run, tmp_path / "out")
    assert not parts_of(tmp_path / "out", "trace").any_done()


def test_the_manifest_has_sizes_and_hashes_of_what_was_read_and_written(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 2)
    convert(run, tmp_path / "out")
    told = msgspec.json.decode((tmp_path / "out" / ".chakra-et.json").read_bytes())
    assert told["runs"] == {"trace": ["trace.0.et", "trace.1.et"]}
    of_rank = told["origins"]["trace.1.et"]
    written = tmp_path / "out" / "trace.1.et"
    assert (of_rank["bytes"], of_rank["sha256"]) == (written.stat().st_size, sha256_of(written))
    assert {item["name"]: (item["bytes"], item["sha256"]) for item in of_rank["inputs"]} == {
        path.name: (path.stat().st_size, sha256_of(path))
        for path in run.iterdir()
        if str(FIRST_PID + 1) in path.name
    }


def test_a_file_that_is_still_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path / "run", 2)
    real = job.convert_pair

    def growing(pair: Any, options: Any) -> Any:
        found = real(pair, options)
        with pair.device.path.open("ab") as file:
            file.write(b"\n")
        return found

    monkeypatch.setattr(job, "convert_pair", growing)
    with pytest.raises(ChakraError, match="the file changed while it was read"):
        convert(run, tmp_path / "out")


def test_a_run_resumed_beside_another_run_leaves_that_one(tmp_path: Path) -> None:
    first, second = run_of(tmp_path / "a", 2), run_of(tmp_path / "b", [5, 6])
    convert(first, tmp_path / "out", prefix="a")
    convert(second, tmp_path / "out", prefix="b")
    assert names_in(tmp_path / "out") == ["a.0.et", "a.1.et", "b.5.et", "b.6.et"]
    convert(first, tmp_path / "out", prefix="a")


def test_records_hold_reports_as_they_were(tmp_path: Path) -> None:
    """Also the arrays and counters in them, and what ranks tell each other."""
    profile = Profile(info={"backend": "nccl", "rank": 3}).op("a", 1, 1, rf_id=1)
    profile.write(tmp_path / "d.json")
    first, again = (
        chakra_et.convert_directory(tmp_path, tmp_path / "out", resume=True)[0] for _ in range(2)
    )
    assert first.report.as_dict() == again.report.as_dict()
    assert first.report == again.report


@pytest.mark.parametrize("other", [False, True])
def test_two_runs_to_one_directory_at_the_same_time_are_one_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: bool
) -> None:
    """The second one publishes, and takes parts away, right before the first one does."""
    run, real = run_of(tmp_path / "run", 2), jobs._published
    second = run_of(tmp_path / "second", 2, device="other_{pid}.pt.trace.json") if other else run
    if other:
        for path in second.glob("other*"):
            path.write_bytes(path.read_bytes().replace(b'"dur": 5.0', b'"dur": 6.0'))

    def published(*arguments: Any) -> Any:
        monkeypatch.setattr(jobs, "_published", real)
        convert(second, tmp_path / "out", resume=False)
        return real(*arguments)

    monkeypatch.setattr(jobs, "_published", published)
    if other:
        with pytest.raises(ChakraError, match="another run was written to this directory"):
            convert(run, tmp_path / "out")
    else:
        assert convert(run, tmp_path / "out") == convert(run, tmp_path / "alone")
    assert traces(tmp_path / "out") == convert(second, tmp_path / "second alone")
