"""All ranks of a directory: the same whoever converts them, all of them or none."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from places import EXAMPLES, names_in
from recordings import HostRecording, Profile

import chakra_et
from chakra_et import ChakraError, Conversion
from chakra_et.io.worker import Worker

RANKS = EXAMPLES / "ddp_2rank"


def without_places(conversions: list[Conversion]) -> list[dict[str, Any]]:
    reports = [conversion.report.as_dict() for conversion in conversions]
    for report in reports:
        report["output"]["path"] = Path(report["output"]["path"]).name
    return reports


def pair(folder: Path, rank: int, *, pid: int | None = None) -> None:
    pid = rank + 100 if pid is None else pid
    HostRecording(pid=pid).op(3, "a", rf_id=1).write(folder / f"host_rank{rank}.json")
    profile = Profile(info={"backend": "nccl", "rank": rank})
    profile.op("a", 1, 1, rf_id=1)
    profile.events[0]["pid"] = pid
    profile.write(folder / f"device_rank{rank}.json")


def test_output_and_reports_do_not_depend_on_the_number_of_jobs(tmp_path: Path) -> None:
    alone = chakra_et.convert_directory(RANKS, tmp_path / "1", jobs=1)
    together = chakra_et.convert_directory(RANKS, tmp_path / "2", jobs=2)
    assert without_places(alone) == without_places(together)
    assert [c.report.rank for c in alone] == [0, 1]
    for name in ("trace.0.et", "trace.1.et"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    assert names_in(tmp_path / "2") == ["trace.0.et", "trace.1.et"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_trace_that_was_written_is_not_kept_but_can_be_had(tmp_path: Path, jobs: int) -> None:
    first, _ = chakra_et.convert_directory(RANKS, tmp_path, jobs=jobs)
    assert first.kept is None
    assert first.output == tmp_path / "trace.0.et"
    assert first.report.output is not None
    with pytest.raises(ChakraError, match=r"Call load\(\)"):
        _ = first.trace
    assert len(first.load().nodes) == first.report.output["nodes"]
    assert first.report.output["bytes"] == first.output.stat().st_size


def test_without_an_output_traces_come_from_other_processes_too(tmp_path: Path) -> None:
    alone = chakra_et.convert_directory(RANKS, None, jobs=1)
    together = chakra_et.convert_directory(RANKS, None, jobs=2)
    for mine, theirs in zip(alone, together, strict=True):
        chakra_et.write(mine.trace, tmp_path / "mine.et")
        chakra_et.write(theirs.trace, tmp_path / "theirs.et")
        assert (tmp_path / "mine.et").read_bytes() == (tmp_path / "theirs.et").read_bytes()


@pytest.mark.parametrize("jobs", [1, 3])
def test_an_error_in_one_rank_names_it_and_what_became_of_the_others(
    tmp_path: Path, jobs: int
) -> None:
    for rank in range(3):
        pair(tmp_path, rank)
    damaged = tmp_path / "host_rank1.json"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(ChakraError) as raised:
        chakra_et.convert_directory(tmp_path, tmp_path / "out", strict=True, jobs=jobs)
    assert raised.value.path == damaged
    assert "2 of 3 pairs could be converted, nothing was written" in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_after_an_error_what_was_there_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "trace.0.et").write_bytes(b"old")
    for name in ("x", "y"):
        profile = Profile(info={"backend": "nccl", "rank": 0})
        profile.op("a", 1, 1, rf_id=1)
        profile.write(tmp_path / "in" / f"{name}.json")
    with pytest.raises(ChakraError, match="two recordings are of rank 0"):
        chakra_et.convert_directory(tmp_path / "in", tmp_path / "out", jobs=1)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["trace.0.et"]
    assert (tmp_path / "out" / "trace.0.et").read_bytes() == b"old"


def test_no_jobs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ChakraError, match="--jobs 0"):
        chakra_et.convert_directory(RANKS, tmp_path, jobs=0)


def test_a_process_that_dies_is_an_error() -> None:
    with Worker("os", "_exit", 3) as worker, pytest.raises(ChakraError, match="without a result"):
        worker.result()


def test_an_interruption_ends_the_other_processes_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were they not ended, this would take ten minutes."""
    begun: list[Worker] = []

    class Sleeping(Worker):
        def ask(self, *_: object) -> None:
            begun.append(self)
            super().ask("time", "sleep", 600)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("chakra_et.jobs.executors.Worker", Sleeping)
    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 2)
    try:
        with pytest.raises(KeyboardInterrupt):
            chakra_et.convert_directory(RANKS, tmp_path / "out", jobs=2)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(begun) == 2
    assert not (tmp_path / "out").exists()
