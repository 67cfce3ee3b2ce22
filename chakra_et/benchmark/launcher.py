"""Ranks as processes of this machine, with the variables that torchrun sets; needs no PyTorch.

Each rank is a fresh interpreter that runs a function of this package. When one of them fails, or
somebody ends this process, all of them end.
"""

from __future__ import annotations

import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from chakra_et.errors import ChakraError

DIRECTORY: Final = "CHAKRA_RUN_DIRECTORY"
"""Names the directory in which the ranks of a launch meet, and leave their results."""
GRACE_S: Final = 2.0
"""How long ranks may take to end by themselves, and to say why, when another has failed."""
_CODE: Final = "from chakra_et.benchmark.launcher import serve; serve()"


class RankError(ChakraError):
    """A rank ended with an error, or without a word."""


@dataclass
class _Ended:
    rank: int
    exit_code: int


def launched() -> bool:
    """Whether this process is one of several ranks that somebody has started."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def launch(module: str, function: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Run a function of a module once for each rank, each with its arguments; their results.

    `arguments` has one entry for each rank. They and the results are pickled; only the ranks import
    the module. What ranks print goes to standard error; what ends this process ends all ranks.
    Raises what a rank raised, and RankError where one ended without a word.
    """
    with tempfile.TemporaryDirectory(prefix="chakra-run-") as directory:
        ranks = _Ranks(Path(directory), (module, function), arguments)
        try:
            ranks.start()
            ranks.wait()
        finally:
            ranks.end()
        return [ranks.result(rank) for rank in range(len(arguments))]


class _Ranks:
    """The processes of one launch."""

    def __init__(
        self, directory: Path, function: tuple[str, str], arguments: Sequence[tuple[Any, ...]]
    ) -> None:
        self.directory = directory
        self.function = function
        self.arguments = arguments
        self.processes: list[subprocess.Popen[bytes]] = []
        self.ended: queue.SimpleQueue[_Ended] = queue.SimpleQueue()

    def start(self) -> None:
        for rank, arguments in enumerate(self.arguments):
            task = (*self.function, arguments)
            (self.directory / f"task.{rank}").write_bytes(pickle.dumps(task))
        for rank in range(len(self.arguments)):
            # Standard input stays open as long as this process lives: a rank sees it close.
            process = subprocess.Popen(
                [sys.executable, "-c", _CODE],
                env=_environment(rank, len(self.arguments), self.directory),
                stdin=subprocess.PIPE,
                stdout=sys.stderr.fileno() if _has_fileno(sys.stderr) else subprocess.DEVNULL,
                start_new_session=True,
            )
            self.processes.append(process)
            threading.Thread(target=self._watch, args=(rank, process), daemon=True).start()

    def _watch(self, rank: int, process: subprocess.Popen[bytes]) -> None:
        self.ended.put(_Ended(rank, process.wait()))

    def wait(self) -> None:
        """Until all have ended well. Raises RankError for the first that has not."""
        for _ in self.processes:
            ended = self.ended.get()
            if ended.exit_code:
                raise self._first_error(ended)

    def _first_error(self, ended: _Ended) -> ChakraError:
        """What went wrong: of several ranks that fail, one that did not just lose another."""
        failed = [ended]
        deadline = time.monotonic() + GRACE_S
        with suppress(queue.Empty):
            while len(failed) < len(self.processes):
                later = self.ended.get(timeout=max(deadline - time.monotonic(), 0))
                failed += [later] * bool(later.exit_code)
        return min((self._error(one) for one in failed), key=lambda error: error[0])[1]

    def _error(self, ended: _Ended) -> tuple[int, ChakraError]:
        """An error, and 0 where it is a cause, more where it may follow from another one."""
        told = self._read("error", ended.rank)
        if told is not None:
            return (1 if told[0] else 2), told[1]
        how = _how(ended.exit_code)
        return 0, RankError(f"rank {ended.rank} {how}", remedy="What it printed stands above.")

    def result(self, rank: int) -> Any:
        return self._read("result", rank)

    def _read(self, what: str, rank: int) -> Any:
        path = self.directory / f"{what}.{rank}"
        return pickle.loads(path.read_bytes()) if path.exists() else None

    def end(self) -> None:
        """End whatever still runs, gently first."""
        running = [process for process in self.processes if process.poll() is None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + GRACE_S
        for process in running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(deadline - time.monotonic(), 0.01))
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdin is not None:
                process.stdin.close()


def _how(exit_code: int) -> str:
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    name = signal.Signals(-exit_code).name
    hint = ", as machines do that run out of memory" if name == "SIGKILL" else ""
    return f"was ended by {name}{hint}"


def _has_fileno(stream: Any) -> bool:
    try:
        return int(stream.fileno()) >= 0
    except (OSError, ValueError, AttributeError):
        return False


def _environment(rank: int, ranks: int, directory: Path) -> dict[str, str]:
    own = {
        "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks,
        DIRECTORY: directory,
    }  # fmt: skip
    threads = str(max(1, (os.cpu_count() or 1) // ranks))
    # What PyTorch's native code prints of a lost rank are stacks; errors say the same in words.
    usual = {"OMP_NUM_THREADS": threads, "TORCH_CPP_LOG_LEVEL": "FATAL"}
    return {**usual, **os.environ, **{key: str(own[key]) for key in own}}


def serve() -> None:
    """Be a rank: run its task, leave what came of it in the directory, and end with the launch."""
    directory, rank = Path(os.environ[DIRECTORY]), int(os.environ["RANK"])
    threading.Thread(target=_end_with_parent, args=(directory,), daemon=True).start()
    module, name, arguments = pickle.loads((directory / f"task.{rank}").read_bytes())
    try:
        result = getattr(import_module(module), name)(*arguments)
    except ChakraError as error:
        is_cause = not getattr(error, "follows", False)
        _leave(directory / f"error.{rank}", (is_cause, error))
        _end(1)
    except SystemExit as end:
        if isinstance(end.code, str):
            _leave(directory / f"error.{rank}", (True, RankError(end.code)))
        _end(end.code if isinstance(end.code, int) else int(end.code is not None))
    _leave(directory / f"result.{rank}", result)
    _end(0)


def _end(code: int) -> None:
    """End at once: threads of a backend may wait for ranks that are gone."""
    sys.stderr.flush()
    os._exit(code)


def _leave(path: Path, content: Any) -> None:
    """Write a file at once, so that nobody reads half of it."""
    partly = path.with_suffix(path.suffix + ".part")
    partly.write_bytes(pickle.dumps(content))
    partly.replace(path)


def _end_with_parent(directory: Path) -> None:
    """End when the process that started this one is gone: its end of the pipe is closed then.

    It has left the directory behind if it was killed.
    """
    with suppress(OSError):
        while os.read(0, 1):
            pass
    shutil.rmtree(directory, ignore_errors=True)
    os._exit(1)
