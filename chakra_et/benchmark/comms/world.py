"""The ranks that run: how a process joins them, and the process groups of a recording."""

# mypy: disable-error-code="import-not-found,no-untyped-call,attr-defined"

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import torch
import torch.distributed as dist

from chakra_et.benchmark.comms.call import Group
from chakra_et.benchmark.launcher import DIRECTORY
from chakra_et.errors import ChakraError

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass
class Seat:
    """This process among the ranks that run."""

    rank: int
    world_size: int
    backend: str
    device: str
    timeout_s: float
    store: Any

    @property
    def timeout(self) -> timedelta:
        """How long anything may be waited for."""
        return timedelta(seconds=self.timeout_s)


def take_seat(backend: str, timeout_s: float, environment: Mapping[str, str] = os.environ) -> Seat:
    """This process's seat, by the variables that torchrun sets, once all ranks are there.

    Raises ChakraError where ranks do not come in time, and where the port is in use.
    """
    rank, world_size = int(environment["RANK"]), int(environment["WORLD_SIZE"])
    if backend == "auto":
        backend = "nccl" if torch.cuda.is_available() else "gloo"
    device = f"cuda:{environment.get('LOCAL_RANK', 0)}" if backend == "nccl" else "cpu"
    store = _store(rank, world_size, timedelta(seconds=timeout_s), environment)
    seat = Seat(rank, world_size, backend, device, timeout_s, store)
    _expect_all(seat)
    return seat


def join(seat: Seat) -> None:
    """Make the group of all ranks."""
    if seat.backend == "nccl":
        torch.cuda.set_device(seat.device)
        # A collective that does not end raises an error, where else the process would be ended.
        os.environ.setdefault("TORCH_NCCL_BLOCKING_WAIT", "1")
    dist.init_process_group(
        seat.backend,
        store=dist.PrefixStore("world", seat.store),
        rank=seat.rank,
        world_size=seat.world_size,
        timeout=seat.timeout,
    )


def make_groups(seat: Seat, groups: Sequence[Group], members: Sequence[int]) -> dict[Group, Any]:
    """The process group of each group that this rank is in; all ranks make all, in one order.

    `members` says which rank of the recording each process runs.
    """
    place = {rank: process for process, rank in enumerate(members)}
    made = {}
    for group in groups:
        processes = [place[rank] for rank in group.ranks]
        if processes == list(range(seat.world_size)):
            made[group] = dist.group.WORLD
            continue
        new = dist.new_group(processes, timeout=seat.timeout, group_desc=group.name or "recorded")
        if seat.rank in processes:
            made[group] = new
    return made


def _store(rank: int, world_size: int, patience: timedelta, told: Mapping[str, str]) -> Any:
    """Where ranks leave texts for each other."""
    if DIRECTORY in told:
        _stay_on_loopback()
        store = dist.FileStore(str(Path(told[DIRECTORY]) / "store"), world_size)
        store.set_timeout(patience)
        return store
    host, port = told.get("MASTER_ADDR", "127.0.0.1"), int(told.get("MASTER_PORT", "29500"))
    if host in _LOOPBACK:
        _stay_on_loopback()
    serves = rank == 0 and told.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    try:
        store = dist.TCPStore(
            host, port, world_size, serves, timeout=patience, wait_for_workers=False
        )
    except (RuntimeError, ValueError) as error:
        if serves:
            raise ChakraError(
                f"port {port} cannot be opened for the ranks to meet: {_reason(error)}",
                remedy="Set another one in MASTER_PORT.",
            ) from None
        raise ChakraError(
            f"rank 0 cannot be reached at {host}, port {port}, within {patience.seconds} s",
            remedy="Start it, or correct MASTER_ADDR and MASTER_PORT.",
        ) from None
    return dist.PrefixStore("chakra", store)


def _reason(error: Exception) -> str:
    text = str(error)
    return "it is in use" if "EADDRINUSE" in text or "in use" in text else text.splitlines()[0]


def _expect_all(seat: Seat) -> None:
    """Raises ChakraError with the ranks that have not started in time."""
    keys = [f"here/{rank}" for rank in range(seat.world_size)]
    seat.store.set(keys[seat.rank], b"1")
    try:
        seat.store.wait(keys, seat.timeout)
    except RuntimeError:
        absent = [rank for rank, key in enumerate(keys) if not seat.store.check([key])]
        names = ", ".join(map(str, absent))
        raise ChakraError(
            f"rank {names} did not start within {seat.timeout_s:g} s",
            remedy=f"Start all {seat.world_size} ranks, or give more time with --timeout.",
        ) from None


def _stay_on_loopback() -> None:
    """Keep gloo from binding to whatever the host's name resolves to."""
    with suppress(OSError):
        for _, name in socket.if_nameindex():
            if name.startswith("lo"):
                os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
