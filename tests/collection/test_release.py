"""What a release of PyTorch and a machine can do is found out, on stand-ins for both."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from chakra_et.collection import release
from chakra_et.collection.release import Place
from chakra_et.errors import ChakraError


class Device:
    """A stand-in for `torch.cuda` that counts how often it was waited for."""

    def __init__(self, initialized: bool) -> None:
        self.waited = 0
        self._initialized = initialized

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return self._initialized

    def synchronize(self) -> None:
        self.waited += 1

    def get_device_name(self) -> str:
        return "NVIDIA A100"


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A stand-in for PyTorch, with one device in use and one that is not."""
    found: Any = ModuleType("torch")
    found.__version__ = "2.6.0"
    found.cuda, found.xpu = Device(True), Device(False)
    monkeypatch.setitem(sys.modules, "torch", found)
    return found


def test_devices_in_use_are_waited_for_and_named(torch: Any) -> None:
    release.synchronize()
    assert (torch.cuda.waited, torch.xpu.waited) == (1, 0)
    assert release.device_names() == ["NVIDIA A100"]
    torch.cuda = Device(False)
    release.synchronize()
    assert torch.cuda.waited == 0
    assert release.device_names() == ["cpu"]


def test_switches_are_those_that_the_release_has(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2.6 has no `profile_all_threads`."""

    def config(*, enable_cuda_sync_events: bool = False) -> None:
        assert enable_cuda_sync_events

    monkeypatch.setitem(sys.modules, "torch._C", ModuleType("torch._C"))
    stand_in = SimpleNamespace(_ExperimentalConfig=config)
    monkeypatch.setitem(sys.modules, "torch._C._profiler", stand_in)
    assert release.switches() == {"enable_cuda_sync_events": True}


def test_releases_before_2_4_are_refused(torch: Any) -> None:
    release.expect_torch()
    torch.__version__ = "2.3.1+cu121"
    with pytest.raises(ChakraError, match=r"PyTorch 2\.3\.1\+cu121 is too old"):
        release.expect_torch()


def test_ranks_over_nccl_are_told_by_torch_distributed(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = type("Group", (), {"group_desc": "tp"})()
    world = SimpleNamespace(pg_names={group: "3"}, pg_backend_config={group: "cuda:nccl"})
    c10d = SimpleNamespace(_world=world, get_process_group_ranks=lambda _: [4, 5])
    dist: Any = ModuleType("torch.distributed")
    dist.is_available = dist.is_initialized = lambda: True
    dist.get_rank, dist.get_world_size, dist.get_backend = lambda: 5, lambda: 8, lambda: "nccl"
    dist.distributed_c10d, torch.distributed = c10d, dist
    monkeypatch.setitem(sys.modules, "torch.distributed", dist)
    found = release.place()
    described = {"name": "3", "description": "tp", "backend": "cuda:nccl", "ranks": [4, 5]}
    assert found == Place(5, 8, "nccl", (described,))
    assert not found.uses_gloo
    assert Place(0, 2, "cpu:gloo,cuda:nccl").uses_gloo


def test_the_launcher_tells_the_rank_before_the_group_is_made(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist: Any = ModuleType("torch.distributed")
    dist.is_available, dist.is_initialized = lambda: True, lambda: False
    torch.distributed = dist
    monkeypatch.setitem(sys.modules, "torch.distributed", dist)
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert release.place() == Place(3, 4)
    assert release.knows_its_rank()
    assert not release.is_restarted()
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert release.is_restarted()
