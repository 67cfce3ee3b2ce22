"""The ranks of a distributed program, as processes of this machine over gloo."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call"

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

TIMEOUT = timedelta(seconds=120)

Program = Callable[[int], None]
"""What each rank runs, once the group of all ranks is there."""


def run_ranks(programs: list[Program], count: int) -> None:
    """Run some programs one after the other on each of `count` ranks.

    Each program finds a new group of all ranks, and a seed that depends on the rank. Raises what a
    rank raised, and TimeoutError.
    """
    # The ranks meet in a file: a server would have threads, and who forks beside threads may hang.
    with tempfile.TemporaryDirectory() as folder:
        ranks = mp.start_processes(
            _run_rank,
            (count, f"{folder}/store", programs),
            nprocs=count,
            join=False,
            start_method="fork",
        )
        deadline = time.monotonic() + TIMEOUT.total_seconds()
        while not ranks.join(timeout=1):
            if time.monotonic() > deadline:
                for process in ranks.processes:
                    process.kill()
                raise TimeoutError(f"{count} ranks did not finish within {TIMEOUT}")


def _run_rank(rank: int, count: int, path: str, programs: list[Program]) -> None:
    _stay_on_loopback()
    store = dist.FileStore(path, count)
    store.set_timeout(TIMEOUT)
    for number, program in enumerate(programs):
        dist.init_process_group(
            "gloo",
            store=dist.PrefixStore(str(number), store),
            rank=rank,
            world_size=count,
            timeout=TIMEOUT,
        )
        torch.manual_seed(rank)
        try:
            program(rank)
        finally:
            dist.destroy_process_group()


def _stay_on_loopback() -> None:
    """Keep gloo from binding to whatever the host's name resolves to."""
    for _, name in socket.if_nameindex():
        if name.startswith("lo"):
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
