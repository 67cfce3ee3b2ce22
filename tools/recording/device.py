"""Devices and links that leave the processors free: what they take is known, and they sleep."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call,misc,untyped-decorator"

from __future__ import annotations

import ctypes
import os
import random
import socket
import stat
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

_SO_MAX_PACING_RATE = 47
_PR_SET_TIMERSLACK = 29


def sleep_until(deadline_ns: int) -> None:
    """Sleep until a moment of the monotonic clock."""
    while (left := deadline_ns - time.monotonic_ns()) > 0:
        time.sleep(left / 1e9)


def wake_at_once() -> None:
    """Let sleeps of this thread end when they are over, not up to 50 us later (Linux)."""
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


@contextmanager
def slowly(factor: float) -> Iterator[None]:
    """What a slower rank does takes longer in proportion: it sleeps for the rest."""
    began = time.monotonic_ns()
    yield
    took = time.monotonic_ns() - began
    if factor > 1:
        sleep_until(began + round(took * factor))


@torch.library.custom_op("known::wait", mutates_args=())
def known_wait(x: torch.Tensor, micros: int) -> torch.Tensor:
    """An operator that takes a known time, as if a device ran it."""
    began = time.monotonic_ns()
    result = x.clone()
    sleep_until(began + micros * 1000)
    return result


@dataclass(frozen=True)
class Machine:
    """Devices for matrix products, and links between ranks: what they take is no processor's time.

    While it is used, `aten::mm` takes the time that its FLOP take on a device, by a random share up
    to `jitter` longer or shorter, and gives zeros. Every connection carries `bytes_per_s`.
    """

    flop_per_s: float
    bytes_per_s: int
    jitter: float = 0.0

    @contextmanager
    def used(self) -> Iterator[None]:
        """The ranks of this process' groups are on this machine meanwhile."""
        wake_at_once()
        shape_links(self.bytes_per_s)
        kernel = torch.library.Library("aten", "IMPL")
        try:
            with warnings.catch_warnings():
                # Some releases of PyTorch warn that a kernel is replaced. That is the purpose.
                warnings.simplefilter("ignore")
                kernel.impl("mm", self._product, "CPU")
            yield
        finally:
            kernel._destroy()

    def _product(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        began = time.monotonic_ns()
        (m, k), n = a.shape, b.shape[1]
        share = 1 + random.uniform(-self.jitter, self.jitter)
        result = a.new_zeros(m, n)
        sleep_until(began + round(2 * m * n * k / self.flop_per_s * share * 1e9))
        return result


def shape_links(bytes_per_s: int) -> None:
    """Let every connection of this process carry so many bytes a second, as Linux paces them."""
    for entry in Path("/proc/self/fd").iterdir():
        number = int(entry.name)
        # One of them was that of the list itself.
        if not _is_socket(number):
            continue
        with socket.socket(fileno=os.dup(number)) as connection:
            if _is_connected(connection):
                connection.setsockopt(socket.SOL_SOCKET, _SO_MAX_PACING_RATE, bytes_per_s)


def _is_socket(number: int) -> bool:
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False


def _is_connected(connection: socket.socket) -> bool:
    try:
        connection.getpeername()
    except OSError:
        return False
    return True
