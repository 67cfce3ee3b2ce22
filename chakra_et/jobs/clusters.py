"""Jobs on a cluster: adapters of Ray and Dask, which both perform jobs of lost workers again.

Workers need this package, and the files and the output under the same paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from chakra_et.errors import ChakraError
from chakra_et.extras import needing
from chakra_et.io.answers import WorkerLostError
from chakra_et.jobs.executors import Executor, J

T = TypeVar("T")
_TRIES: Final = 3
"""So often is a job performed again whose worker was lost."""


class RayExecutor:
    """Jobs as tasks of Ray; the caller has initialised it, or `ray_executor` does."""

    def __init__(self) -> None:
        import ray

        self._lost = (ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError)
        self._call = ray.remote(num_cpus=1, max_retries=_TRIES)(_call)

    def submit(self, function: Callable[[J], T], job: J, /) -> Future[T]:
        """Begin a task; Ray begins it again where its worker is lost."""
        return _or_lost(self._call.remote(function, job).future(), self._lost)


class DaskExecutor:
    """Jobs as tasks of a client of Dask."""

    def __init__(self, client: Any) -> None:
        from distributed import KilledWorker

        self._lost = (KilledWorker,)
        self._executor = client.get_executor(pure=False, retries=_TRIES)

    def submit(self, function: Callable[[J], T], job: J, /) -> Future[T]:
        """Begin a task; the scheduler gives it to another worker where one is lost."""
        return _or_lost(self._executor.submit(_call, function, job), self._lost)


@contextmanager
def cluster_executor(asked: str, workers: int | None) -> Iterator[Executor]:
    """The executor that `ray`, `dask` or `dask=ADDRESS` names.

    Without an address, a cluster of this machine is started, with so many workers. Raises
    ChakraError for another name, and where the package is not installed.
    """
    name, _, address = asked.partition("=")
    if name not in _CLUSTERS:
        raise ChakraError(
            f"--executor {asked}: unknown",
            remedy="Name ray, dask, or either with an address, as in dask=tcp://host:8786.",
        )
    with _CLUSTERS[name](address or None, workers) as executor:
        yield executor


@contextmanager
def _ray(address: str | None, workers: int | None) -> Iterator[Executor]:
    with needing("--executor ray", "ray", "ray"):
        import ray
    ours = not ray.is_initialized()
    if ours:
        started = {} if address else {"num_cpus": workers, "include_dashboard": False}
        ray.init(address=address, log_to_driver=False, **started)
    try:
        yield RayExecutor()
    finally:
        if ours:
            ray.shutdown()


@contextmanager
def _dask(address: str | None, workers: int | None) -> Iterator[Executor]:
    with needing("--executor dask", "dask", "distributed"):
        from distributed import Client, LocalCluster
    if address is not None:
        with Client(address) as client:
            yield DaskExecutor(client)
        return
    options = {"threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster) as client:
        yield DaskExecutor(client)


_CLUSTERS: Final = {"ray": _ray, "dask": _dask}


def _call(function: Callable[[J], T], job: J) -> T:
    return function(job)


def _or_lost(future: Future[T], lost: tuple[type[BaseException], ...]) -> Future[T]:
    """A future whose job ends with a ChakraError where the cluster has given it up."""
    told: Future[T] = Future()

    def done(ended: Future[T]) -> None:
        error = ended.exception()
        if error is None:
            told.set_result(ended.result())
        elif isinstance(error, lost):
            told.set_exception(
                WorkerLostError(
                    f"the workers that converted this rank were lost, {_TRIES + 1} times",
                    remedy="They may have run out of memory; see the log of the cluster.",
                )
            )
        else:
            told.set_exception(error)

    future.add_done_callback(done)
    return told
