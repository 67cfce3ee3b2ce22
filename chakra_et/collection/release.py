"""What the PyTorch at hand can record, and what it knows of the run."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from chakra_et.errors import ChakraError
from chakra_et.extras import library

OLDEST: Final = (2, 4)
"""The first release that gives both files the same ids."""
EXTRA: Final = ("enable_cuda_sync_events", "profile_all_threads")
"""Switches of the profiler that are off by default; not every release has each."""
DEVICES: Final = ("cuda", "xpu")


def expect_torch() -> None:
    """Raise ChakraError where PyTorch is missing or too old."""
    torch = library("torch", "torch", "recording or running operators")
    release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if release < OLDEST:
        raise ChakraError(
            f"PyTorch {torch.__version__} is too old to record both files of a run alike",
            remedy="Install 2.4 or later, or see docs/recording.md for older releases.",
        )


def switches() -> dict[str, bool]:
    """Those of `EXTRA` that this release has."""
    from torch._C._profiler import _ExperimentalConfig

    found = {}
    for name in EXTRA:
        try:
            _ExperimentalConfig(**{name: True})
        except TypeError:
            continue
        found[name] = True
    return found


def synchronize() -> None:
    """Wait until the devices that this process uses have nothing left to do."""
    for module in _devices_in_use():
        module.synchronize()


def device_names() -> list[str]:
    """The devices that this process uses."""
    names = [module.get_device_name() for module in _devices_in_use()]
    return names or ["cpu"]


def _devices_in_use() -> Iterator[Any]:
    import torch

    for name in DEVICES:
        module = getattr(torch, name, None)
        if module is not None and module.is_available() and module.is_initialized():
            yield module


def in_backward() -> bool:
    """Whether this thread is inside of a backward pass."""
    import torch

    task = getattr(torch._C, "_current_graph_task_id", None)
    return task is not None and bool(task() != -1)


@dataclass(frozen=True)
class Place:
    """Where a process stands in its run."""

    rank: int = 0
    world_size: int = 1
    backend: str | None = None
    groups: tuple[dict[str, Any], ...] = ()

    @property
    def uses_gloo(self) -> bool:
        """Whether gloo's threads communicate."""
        backends = [self.backend, *(group["backend"] for group in self.groups)]
        return any("gloo" in str(backend) for backend in backends)


def place() -> Place:
    """As `torch.distributed` knows it, else as the launcher's environment has it."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_initialized()):
        return Place(_number("RANK", 0), _number("WORLD_SIZE", 1))
    return Place(dist.get_rank(), dist.get_world_size(), dist.get_backend(), tuple(_groups()))


def knows_its_rank() -> bool:
    """Whether `place` is right from the start, before a process group is made."""
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return True
    return "RANK" in os.environ or multiprocessing.parent_process() is None


def is_restarted() -> bool:
    """Whether the launcher has started this rank anew, after a failure."""
    return _number("TORCHELASTIC_RESTART_COUNT", 0) > 0


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else default


def _groups() -> Iterator[dict[str, Any]]:
    """The process groups of this process, with their global ranks."""
    from torch.distributed import distributed_c10d as c10d

    for group, name in list(c10d._world.pg_names.items()):
        yield {
            "name": name,
            "description": getattr(group, "group_desc", None),
            "backend": c10d._world.pg_backend_config.get(group),
            "ranks": c10d.get_process_group_ranks(group),
        }
