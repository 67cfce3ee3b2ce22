"""Transfers that a backend closed late: who reads what they brought has seen their end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from accounts import converted, edges_into
from recordings import HostRecording, Profile

from chakra_et.conversion import Conversion
from chakra_et.model import Node
from chakra_et.replay import replay

WORKER = 4009
TENSOR = "Tensor(float)"
STORAGE = "id of the storage"


def tensor(storage: int) -> tuple[list[list[object]], list[list[int]], list[str]]:
    return [[800 + storage, storage, 0, 16, 4, "cpu"]], [[16]], [TENSOR]


@dataclass
class Run:
    """An all-reduce from 60 to 1000 us on a worker; others read storage 70, which it fills."""

    host: HostRecording
    profile: Profile
    number: int = 13

    @classmethod
    def asked(cls) -> Run:
        ask = "c10d::allreduce_(Tensor[] tensors) -> Tensor[]"
        host, profile = HostRecording(), Profile()
        given = ([tensor(70)[0]], [[[16]]], [f"GenericList[{TENSOR}]"])
        host.op(10, "c10d::allreduce_", rf_id=10, inputs=given, schema=ask)
        profile.op("c10d::allreduce_", 0, 40, rf_id=10)
        host.op(11, "gloo:all_reduce", rf_id=11, inputs=given)
        profile.op("gloo:all_reduce", 60, 940, rf_id=11, tid=WORKER, cat="user_annotation")
        host.op(12, "aten::relu", rf_id=12, inputs=tensor(71), outputs=tensor(72))
        profile.op("aten::relu", 50, 500, rf_id=12)
        return cls(host, profile)

    def read(self, name: str, at: float, lasts: float = 20) -> Run:
        """An operation that reads what the transfer has brought."""
        schema = f"{name}(Tensor self) -> Tensor"
        out = tensor(80 + self.number)
        self.host.op(self.number, name, rf_id=self.number, inputs=tensor(70), outputs=out,
                     schema=schema)  # fmt: skip
        self.profile.op(name, at, lasts, rf_id=self.number)
        self.number += 1
        return self

    def linked(self, folder: Path) -> Conversion:
        host, device = folder / "host.json", folder / "device.json"
        return converted(self.host.write(host), self.profile.write(device))


def transfer(result: Conversion) -> Node:
    (node,) = result.trace.nodes.where(name="gloo:all_reduce")
    assert isinstance(node, Node)
    return node


def told(result: Conversion) -> list[str]:
    return [w for w in result.report.warnings if "still open" in w or "contradict" in w]


@pytest.mark.parametrize("starts", [(940,), (940, 970, 990), (700, 940), (940, 1200)])
def test_it_ends_where_its_first_reader_begins(tmp_path: Path, starts: tuple[float, ...]) -> None:
    run = Run.asked()
    for place, at in enumerate(starts):
        run.read(f"aten::read{place}", at)
    result = run.linked(tmp_path)
    assert transfer(result).duration_ns == (starts[0] - 60) * 1000
    for place in range(len(starts)):
        assert ("gloo:all_reduce", "data", STORAGE) in edges_into(result, f"aten::read{place}")
    assert told(result) == [
        "1 transfer was still open when the data was read, "
        f"for up to {1000 - starts[0]} us; each ends where its first reader begins"
    ]
    assert replay(result.trace).figures[0].span_error == 0


def test_it_ends_as_recorded_where_nobody_reads_before(tmp_path: Path) -> None:
    result = Run.asked().read("aten::read", 1010).linked(tmp_path)
    assert transfer(result).duration_ns == 940_000
    assert told(result) == []


def test_times_before_the_epoch_end_as_recorded(tmp_path: Path) -> None:
    run = Run.asked()
    run.profile.base_ns = -(1 << 60)
    result = run.linked(tmp_path)
    assert transfer(result).duration_ns == 940_000
    assert told(result) == []


def test_who_waits_for_it_begins_before_its_end(tmp_path: Path) -> None:
    result = Run.asked().read("_c10d_functional::wait_tensor", 600, 430).linked(tmp_path)
    assert transfer(result).duration_ns == 940_000
    assert told(result) == []


def test_it_does_not_end_before_what_the_backend_did_inside(tmp_path: Path) -> None:
    run = Run.asked()
    run.profile.op("aten::copy_", 900, 60, rf_id=90, tid=WORKER)
    result = run.read("aten::early", 940).read("aten::late", 970).linked(tmp_path)
    assert transfer(result).duration_ns == (970 - 60) * 1000
    assert ("gloo:all_reduce", "data", STORAGE) in edges_into(result, "aten::late")


def test_the_rest_of_a_call_beside_it_does_not_hide_the_wait(tmp_path: Path) -> None:
    """A second call asks while the first transfer runs, and returns long after its own begins."""
    run = Run.asked()
    given = ([tensor(75)[0]], [[[16]]], [f"GenericList[{TENSOR}]"])
    run.host.op(
        20, "c10d::allreduce_", rf_id=20, inputs=given, schema="c10d::allreduce_(Tensor[] t)"
    )
    run.profile.op("c10d::allreduce_", 560, 300, rf_id=20)
    run.host.op(21, "gloo:all_gather", rf_id=21, inputs=given)
    run.profile.op("gloo:all_gather", 600, 900, rf_id=21, tid=WORKER + 1, cat="user_annotation")
    run.number = 22
    result = run.read("aten::read", 940).linked(tmp_path)
    assert ("gloo:all_reduce", "data", STORAGE) in edges_into(result, "aten::read")
    assert transfer(result).duration_ns == 880_000
    done = replay(result.trace)
    (read,) = done.trace.nodes.where(name="aten::read")
    assert read.start_ns - Profile.base_ns == 940_000
