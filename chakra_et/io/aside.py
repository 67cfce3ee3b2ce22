"""Work in another interpreter while this one goes on."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib import import_module
from typing import Any

from chakra_et.errors import ChakraError


class Aside:
    """A function of this package at work in another interpreter.

    A fresh interpreter is slower to begin than a fork, but needs nothing of the program that asks:
    neither a guarded main module nor the absence of threads.
    """

    def __init__(self, module: str, function: str, *arguments: Any) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from chakra_et.io.aside import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(pickle.dumps((module, function, arguments)))
        self._process.stdin.close()

    def __enter__(self) -> Aside:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def result(self) -> Any:
        """What the function returned. Raises the ChakraError that it raised."""
        assert self._process.stdout is not None
        answer = self._process.stdout.read()
        if self._process.wait() != 0:
            raise ChakraError(
                "the process at work on this ended without an answer",
                remedy="Memory may have run out; fewer --jobs need less.",
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
    sys.stdout.buffer.write(pickle.dumps((error, value), protocol=5))
