"""What another process answers: an error, or a value."""

from __future__ import annotations

import os
import pickle
from typing import IO, Any

from chakra_et.errors import ChakraError


class WorkerLostError(ChakraError):
    """A worker process ended before it could answer."""


def answer(stream: IO[bytes], error: Exception | None, value: Any) -> None:
    """Send an answer; the process ends where nobody waits for it any more."""
    try:
        pickle.dump((error, value), stream, protocol=5)
        stream.flush()
    except BrokenPipeError:
        os._exit(1)


def received(stream: IO[bytes]) -> Any:
    """The value of the next answer. Raises its error, or WorkerLostError where there is none."""
    try:
        error, value = pickle.load(stream)
    except (EOFError, pickle.UnpicklingError):
        raise WorkerLostError(
            "the worker process ended without a result",
            remedy="It may have run out of memory: free some, or give fewer --jobs.",
        ) from None
    if error is not None:
        raise error
    return value
