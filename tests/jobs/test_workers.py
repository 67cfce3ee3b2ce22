"""Worker processes: never more than memory has room for, and nothing is lost with one of them."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pytest

from chakra_et.io.answers import WorkerLostError
from chakra_et.io.cgroup import cgroup_cores
from chakra_et.io.worker import Worker, in_worker
from chakra_et.jobs.crew import Crew, sensible_count
from chakra_et.jobs.executors import Workers, _Memory
from chakra_et.jobs.job import Job

MIB = 1 << 20


class Sized:
    """A job of which only the size counts."""

    def __init__(self, size: int, place: Path | None = None) -> None:
        self.bytes = size
        self.place = place


def killing_the_first_time(job: Job) -> str:
    """Ends its process as the system does when memory is short, but once."""
    place = cast(Any, job).place
    try:
        place.touch(exist_ok=False)
    except FileExistsError:
        return "done"
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


def own_process(_: Job) -> tuple[int, bool]:
    return os.getpid(), in_worker()


def test_a_job_whose_worker_is_killed_is_performed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{Path(__file__).parent}")
    for function in (killing_the_first_time, own_process):
        monkeypatch.setattr(function, "__module__", Path(__file__).stem)
    with Workers(2, 1 << 30) as workers:
        lost = workers.submit(killing_the_first_time, cast(Job, Sized(1, tmp_path / "seen")))
        others = [workers.submit(own_process, cast(Job, Sized(1))) for _ in range(6)]
        assert lost.result() == "done"
        processes = {future.result() for future in others}
    assert all(in_one for _, in_one in processes)
    assert os.getpid() not in {pid for pid, _ in processes}
    assert len(processes) <= 3, "workers serve one job after the other"


def test_a_worker_answers_several_questions() -> None:
    with Worker() as worker:
        for number in (9, 16):
            worker.ask("math", "isqrt", number)
            assert worker.result() ** 2 == number
        worker.end()
        with pytest.raises(WorkerLostError):
            worker.result()


def test_jobs_wait_until_memory_has_room() -> None:
    memory = _Memory(100)
    held: list[int] = []
    most = 0
    lock = threading.Lock()

    def take(size: int) -> None:
        nonlocal most
        with memory.taken(size):
            with lock:
                held.append(size)
                most = max(most, sum(held))
            with lock:
                held.remove(size)

    threads = [threading.Thread(target=take, args=(size,)) for size in (60, 50, 40, 30, 70) * 8]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0 < most <= 100


def test_a_job_that_needs_more_than_there_is_runs_alone() -> None:
    memory = _Memory(100)
    with memory.taken(1000):
        other = threading.Thread(target=lambda: memory.taken(1).__enter__())
        other.start()
        other.join(0.05)
        assert other.is_alive()
    other.join(10)
    assert not other.is_alive()


def test_few_small_ranks_are_not_worth_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chakra_et.jobs.crew.usable_cores", lambda: 4)
    assert sensible_count([cast(Job, Sized(1000))] * 8) == 1
    assert sensible_count([cast(Job, Sized(1000))] * 64) == 4
    assert sensible_count([cast(Job, Sized(30 * MIB))] * 2) == 4


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000"}, 1.5),
        ({"cpu.max": "max 100000"}, None),
        ({}, None),
    ],
)
def test_time_of_cores_in_a_control_group(
    tmp_path: Path, files: dict[str, str], cores: float | None
) -> None:
    (tmp_path / "cgroup").write_text("0::/job/step\n")
    (tmp_path / "job" / "step").mkdir(parents=True)
    for name, text in files.items():
        (tmp_path / "job" / name).write_text(text)
    assert cgroup_cores(tmp_path / "cgroup", tmp_path) == cores


def test_a_crew_takes_any_executor_and_tells_of_each_job() -> None:
    """The protocol is that of `concurrent.futures`: submit a function and a job, get a future."""

    class Later:
        def submit(self, _function: Any, job: Any, /) -> Future[Any]:
            future: Future[Any] = Future()
            threading.Timer(0.01, future.set_result, [job.bytes]).start()
            return future

    told: list[tuple[int, int]] = []
    crew = Crew(Later(), lambda done, of: told.append((done, of)))
    assert crew.perform([cast(Job, Sized(size)) for size in (1, 2, 3)]) == [1, 2, 3]  # type: ignore[comparison-overlap]
    assert sorted(told) == [(1, 3), (2, 3), (3, 3)]
