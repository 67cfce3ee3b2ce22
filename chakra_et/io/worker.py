"""Work in another interpreter while this one goes on."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from importlib import import_module
from typing import Any, Final

from chakra_et.errors import ChakraError

_CODE: Final = (
    # Ctrl-C reaches both; this one ends when the one that asked ends it.
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "from chakra_et.io.worker import serve; serve()"
)


class Worker:
    """A function of this package at work in another interpreter.

    A fresh interpreter is slower to begin than a fork, but needs nothing of the program that asks:
    neither a guarded main module nor the absence of threads.
    """

    def __init__(self, module: str, function: str, *arguments: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(pickle.dumps((module, function, arguments)))
        self._process.stdin.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def end(self) -> None:
        """End the work; its result is an error then."""
        self._process.kill()

    def result(self) -> Any:
        """What the function returned. Raises the ChakraError that it raised."""
        assert self._process.stdout is not None
        answer = self._process.stdout.read()
        if self._process.wait() != 0:
            raise ChakraError(
                "the worker process ended without a result",
                remedy="It may have run out of memory; fewer --jobs need less.",
            )
        error, value = pickle.loads(answer)
        if error is not None:
            raise error
        return value


def serve() -> None:
    """Do what the other process asks for on standard input; the answer goes to standard output."""
    module, function, arguments = pickle.loads(sys.stdin.buffer.read())
    error = value = None
    try:
        value = getattr(import_module(module), function)(*arguments)
    except ChakraError as raised:
        error = raised
    answer = pickle.dumps((error, value), protocol=5)
    try:
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Nobody waits for it any more.
        os._exit(1)
