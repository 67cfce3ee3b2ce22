"""Who performs jobs: this process, worker processes of this machine, or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Condition, Lock
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar

from chakra_et.errors import ChakraError
from chakra_et.io.answers import WorkerLostError
from chakra_et.io.worker import Worker

T = TypeVar("T")
MEMORY_FACTOR: Final = 2
"""Memory that a conversion may take, in sizes of its input: 1.4 for a pair of 193 MB, and room."""
_LEAST_BYTES: Final = 64 << 20
"""What a worker takes at least."""
_RETIRED_BYTES: Final = 256 << 20
"""After so many bytes of input a worker ends, so that it gives its memory back."""


class Sized(Protocol):
    """What a worker can be given: it knows about how many bytes it takes to read."""

    @property
    def bytes(self) -> int:
        """About how many bytes there are to read."""
        ...


J = TypeVar("J", bound=Sized)


class Executor(Protocol):
    """Performs jobs, in whatever order and wherever: the executors of `concurrent.futures` do.

    The function is one of this package, and it and the job can be pickled. Where a job's process
    is lost, the executor should perform it again.
    """

    def submit(self, function: Callable[[J], T], job: J, /) -> Future[T]:
        """Begin to call a function with a job; the future has what it returns."""
        ...


class Here:
    """This process, one job after the other."""

    def submit(self, function: Callable[[J], T], job: J, /) -> Future[T]:
        """Call the function, now."""
        future: Future[T] = Future()
        future.set_result(function(job))
        return future


class Workers:
    """Worker processes of this machine: at most `count`, and while memory has room for their jobs.

    `room_bytes` is what all of them may take. A worker that is lost, perhaps because the system
    was out of memory, is replaced, and its job performed again when no other is.
    """

    def __init__(self, count: int, room_bytes: int) -> None:
        self._threads = ThreadPoolExecutor(count)
        self._memory = _Memory(room_bytes)
        self._lock = Lock()
        self._idle: list[tuple[Worker, int]] = []
        self._busy: set[Worker] = set()
        self._ended = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        if kind is not None:
            with self._lock:
                self._ended = True
                for worker in self._busy:
                    worker.end()
        self._threads.shutdown(cancel_futures=kind is not None)
        for worker, _served in self._idle:
            worker.__exit__()

    def submit(self, function: Callable[[J], T], job: J, /) -> Future[T]:
        """Let a worker call the function when one is free and there is memory."""
        return self._threads.submit(self._ask, function, job)

    def _ask(self, function: Callable[[J], T], job: J) -> T:
        size = job.bytes
        needed = max(MEMORY_FACTOR * size, _LEAST_BYTES)
        try:
            with self._memory.taken(needed):
                return self._answer(function, job, size)
        except WorkerLostError:
            if self._ended:
                raise
        with self._memory.taken(self._memory.room):
            return self._answer(function, job, size)

    def _answer(self, function: Callable[[J], T], job: J, size: int) -> T:
        worker, served = self._taken()
        try:
            worker.ask(function.__module__, function.__qualname__, job)
            answer: T = worker.result()
        except ChakraError:
            self._given_back(worker, None)
            raise
        self._given_back(worker, served + size)
        return answer

    def _taken(self) -> tuple[Worker, int]:
        with self._lock:
            if self._ended:
                raise WorkerLostError("the conversion was ended")
            worker, served = self._idle.pop() if self._idle else (Worker(), 0)
            self._busy.add(worker)
            return worker, served

    def _given_back(self, worker: Worker, served: int | None) -> None:
        """Take a worker back, unless it was lost or has done enough."""
        with self._lock:
            self._busy.discard(worker)
            if served is not None and served < _RETIRED_BYTES:
                self._idle.append((worker, served))
                return
        worker.__exit__()


class _Memory:
    """What may be taken at the same time; whoever needs more than all of it takes all."""

    def __init__(self, room_bytes: int) -> None:
        self.room = room_bytes
        self._free = room_bytes
        self._changed = Condition()

    @contextmanager
    def taken(self, wanted: int) -> Iterator[None]:
        """Within it, so much is taken; it begins when that is free."""
        wanted = min(wanted, self.room)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= wanted)
            self._free -= wanted
        try:
            yield
        finally:
            with self._changed:
                self._free += wanted
                self._changed.notify_all()


def collected(future: Future[Any]) -> Any:
    """The result of a future, where a ChakraError is one, too."""
    try:
        return future.result()
    except ChakraError as error:
        return error
