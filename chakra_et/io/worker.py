"""Work in another interpreter while this one goes on."""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

from chakra_et.errors import ChakraError
from chakra_et.io.answers import answer, received
from chakra_et.io.cores import load_numpy

_CODE: Final = (
    # Ctrl-C reaches both; this one ends when the one that asked ends it.
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from chakra_et.io.worker import serve; serve()"
)
_SERVING: Final[list[bool]] = []
"""Not empty where this process is such another interpreter."""


class Worker:
    """Functions of this package at work in another interpreter, one after the other.

    A fresh interpreter is slower to begin than a fork, but needs nothing of the program that asks:
    neither a guarded main module nor the absence of threads. What it is made with is the first
    thing that it is asked.
    """

    def __init__(self, *question: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._ended = False
        if question:
            self.ask(*question)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def end(self) -> None:
        """End the work; its result is an error then."""
        self._ended = True
        self._process.kill()

    @property
    def was_ended(self) -> bool:
        """Whether `end` was called."""
        return self._ended

    def ask(self, module: str, function: str, *arguments: Any) -> None:
        """Let it call a function of a module; `result` waits for what that returns."""
        question = pickle.dumps((module, function, arguments))
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # It has ended, which `result` tells.
            self._process.stdin.write(question)
            self._process.stdin.flush()

    def result(self) -> Any:
        """What the function returned. Raises its ChakraError, or WorkerLostError."""
        assert self._process.stdout is not None
        return received(self._process.stdout)


def in_worker() -> bool:
    """Whether this process is a worker: the cores are shared then, and it starts no other."""
    return bool(_SERVING)


def serve() -> None:
    """Do what the other process asks for on standard input; answers go to standard output."""
    _SERVING.append(True)
    load_numpy()
    while True:
        try:
            module, function, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        error = value = None
        try:
            value = getattr(import_module(module), function)(*arguments)
        except ChakraError as raised:
            error = raised
        answer(sys.stdout.buffer, error, value)
