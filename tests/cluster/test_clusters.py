"""Ray and Dask, each with a real cluster of several workers, one of which is killed on the way."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from command import chakra
from many_ranks import FIRST_PID, run_of, traces
from places import EXAMPLES

import chakra_et
from chakra_et.jobs.clusters import DaskExecutor, RayExecutor
from chakra_et.jobs.executors import Executor

RANKS = 12
KILLED_AT = 5
# The workers cannot import a test.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Watched:
    """An executor whose jobs take a while, and tell in a folder which processes perform them.

    When so many were begun, the process that begins the next one is killed.
    """

    def __init__(self, inner: Executor, folder: Path) -> None:
        self.inner, self.folder = inner, folder

    def submit(self, function: Callable[[Any], Any], job: Any, /) -> Future[Any]:
        folder = self.folder

        def watched(job: Any) -> Any:
            begun = len(list(folder.iterdir()))
            (folder / f"{begun}.{os.getpid()}.{time.monotonic_ns()}").touch()
            if begun >= KILLED_AT:
                with suppress(FileExistsError):
                    (folder.parent / "killed").touch(exist_ok=False)
                    os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(0.1)
            return function(job)

        return self.inner.submit(watched, job)


@pytest.fixture(scope="module")
def ray_cluster() -> Iterator[Executor]:
    import ray

    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    yield RayExecutor()
    ray.shutdown()


@pytest.fixture(scope="module")
def dask_cluster() -> Iterator[Executor]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster) as client,
    ):
        yield DaskExecutor(client)


@pytest.fixture(params=["ray", "dask"])
def executor(request: pytest.FixtureRequest) -> Executor:
    found: Executor = request.getfixturevalue(f"{request.param}_cluster")
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a damaged rank."""
    run = run_of(tmp_path_factory.mktemp("many") / "run", RANKS)
    bad = run / f"node_{FIRST_PID + 7}.1700000000000000007.pt.trace.json"
    bad.write_bytes(b'{"schemaVersion": 1, "traceEvents": 5}')
    return run


def test_a_worker_is_killed_and_nothing_is_lost(
    executor: Executor, run: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    alone = chakra_et.convert_files(run, tmp_path / "alone", keep_going=True, jobs=1)
    found = chakra_et.convert_files(
        run, tmp_path / "out", keep_going=True, executor=Watched(executor, seen)
    )
    assert (tmp_path / "killed").exists()
    processes = [path.name.split(".")[1] for path in seen.iterdir()]
    assert len(set(processes)) > 1
    # A conversion of each, one judgement of all, and what the killed one had begun.
    assert len(processes) > RANKS + 1
    assert traces(tmp_path / "out") == traces(tmp_path / "alone")
    assert len(found) == len(alone) == RANKS - 1
    assert [str(f.error) for f in found.failures] == [str(f.error) for f in alone.failures]


def test_ranks_learn_of_each_other_on_a_cluster_too(executor: Executor, tmp_path: Path) -> None:
    run = EXAMPLES / "ddp_2rank"
    chakra_et.convert_files(run, tmp_path / "alone", jobs=1)
    chakra_et.convert_files(run, tmp_path / "out", executor=executor)
    assert traces(tmp_path / "out") == traces(tmp_path / "alone")


def test_paths_are_those_of_the_caller(
    executor: Executor, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers have a current directory of their own."""
    monkeypatch.chdir(run.parent)
    chakra_et.convert_files("run", "here", keep_going=True, executor=executor)
    chakra_et.convert_files(run, tmp_path / "alone", keep_going=True, jobs=1)
    assert traces(run.parent / "here") == traces(tmp_path / "alone")


def test_the_command_starts_a_cluster_and_names_what_it_does_not_know(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", 3)
    words = ("convert", run, "-o", tmp_path / "out")
    done = chakra(*words, "--executor", "dask", "--jobs", 2)
    assert done.code == 0, done.errors
    chakra_et.convert_files(run, tmp_path / "alone", jobs=1)
    assert traces(tmp_path / "out") == traces(tmp_path / "alone")
    assert "--executor slurm: unknown" in chakra(*words, "--executor", "slurm").errors
