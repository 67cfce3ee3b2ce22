"""Having jobs performed: how many at the same time, and who hears of those that are done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Lock
from typing import Final, TypeAlias

import msgspec

from chakra_et.errors import ChakraError
from chakra_et.io.cores import usable_cores
from chakra_et.io.memory import available_bytes
from chakra_et.jobs.executors import Executor, Here, Workers, collected
from chakra_et.jobs.job import Job, Outcome, tried
from chakra_et.urls import is_of_this_process, url_of

_WORTH_BYTES: Final = 48 << 20
"""Below this, workers take longer to begin than they save."""
_RANK_BYTES: Final = 1 << 20
"""What is done for every rank, whatever its size, takes as long as so many bytes."""

Step: TypeAlias = Callable[[int, int], None]
"""Hears how many ranks are done, and of how many."""
Result: TypeAlias = "Outcome | ChakraError"


class Crew(msgspec.Struct, frozen=True):
    """An executor, and who hears of what it has done."""

    executor: Executor
    step: Step

    def perform(self, jobs: Sequence[Job]) -> list[Result]:
        """What came of each job."""
        count, done, lock = len(jobs), 0, Lock()

        def told(_: Future[Result]) -> None:
            nonlocal done
            with lock:
                done += 1
                self.step(done, count)

        futures: list[Future[Result]] = []
        for job in jobs:
            futures.append(self.executor.submit(tried, job))
            futures[-1].add_done_callback(told)
        return [collected(future) for future in futures]


@contextmanager
def local_executor(jobs: Sequence[Job], count: int | None) -> Iterator[Executor]:
    """Workers of this machine: `count`, else as many as pay; this process where that is one."""
    if (count or sensible_count(jobs)) == 1 or len(jobs) == 1 or _needs_this_process(jobs):
        yield Here()
        return
    count = min(count or sensible_count(jobs), len(jobs))
    with Workers(count, available_bytes()) as workers:
        yield workers


def sensible_count(jobs: Sequence[Job]) -> int:
    """How many workers pay: a worker for each core, none where there is little to do."""
    if sum(job.bytes + _RANK_BYTES for job in jobs) < _WORTH_BYTES:
        return 1
    return usable_cores()


def _needs_this_process(jobs: Sequence[Job]) -> bool:
    """Whether files are pipes, or lie in the memory of this process."""
    files = [file for job in jobs for file in job.pair.files]
    places = [file.path for file in files] + [job.parts.target for job in jobs if job.parts]
    urls = [url for place in places if (url := url_of(place))]
    return any(file.is_pipe for file in files) or any(map(is_of_this_process, urls))
