"""Waits and copies as newer profilers write them: calls without streams, copies without names."""

from __future__ import annotations

from pathlib import Path

import pytest
from accounts import converted, edges_into
from recordings import BACKWARD, Profile

from chakra_et.linker.evidence import Evidence
from chakra_et.replay import replay

LAST = Evidence.EVENT_LAUNCHED_LAST.label


def waits_by_call(*, first: int = 7, second: int | None = None) -> Profile:
    """Work on one stream or two, an event, and work on stream 20 that is made to wait for it."""
    profile = Profile().call("cudaLaunchKernel", 5, 5, 9).kernel("gemm", 15, 100, 9, stream=first)
    if second is not None:
        profile.call("cudaLaunchKernel", 15, 5, 8).kernel("other", 22, 60, 8, stream=second)
    profile.call("cudaEventRecord", 25, 2, 10).call("cudaStreamWaitEvent", 30, 2, 11)
    told = {"wait_on_stream": -1, "wait_on_cuda_event_record_corr_id": 10}
    profile.wait("Stream Wait Event", 30.5, 11, stream=20, **told)
    return profile.call("cudaLaunchKernel", 40, 5, 12).kernel("side", 118, 30, 12, stream=20)


def events(profile: Profile, path: Path, name: str = "side") -> set[tuple[str, str | None]]:
    result = converted(None, profile.write(path / "device.json"))
    return {(s, label) for s, kind, label in edges_into(result, name) if kind == "event"}


def test_an_event_is_about_what_its_thread_had_launched_last(tmp_path: Path) -> None:
    assert events(waits_by_call(), tmp_path) == {("gemm", LAST)}
    assert events(waits_by_call(second=9), tmp_path) == {("other", LAST)}


def test_it_is_not_about_the_waiting_stream(tmp_path: Path) -> None:
    assert events(waits_by_call(second=20), tmp_path) == {("gemm", LAST)}


def test_it_is_not_about_what_another_thread_launched(tmp_path: Path) -> None:
    profile = waits_by_call().call("cudaLaunchKernel", 20, 3, 8, tid=BACKWARD)
    profile.kernel("other", 25, 60, 8, stream=9)
    assert events(profile, tmp_path) == {("gemm", LAST)}


def test_times_are_believed_before_it(tmp_path: Path) -> None:
    profile = waits_by_call(second=9)
    (other,) = (e for e in profile.events if e["name"] == "other")
    other["dur"] = 200
    assert events(profile, tmp_path) == {("gemm", LAST)}


def test_where_the_stream_is_told_it_is_stated(tmp_path: Path) -> None:
    profile = waits_by_call(second=9)
    (wait,) = (e for e in profile.events if e["cat"] == "cuda_sync")
    wait["args"]["wait_on_stream"] = 7
    assert events(profile, tmp_path) == {("gemm", Evidence.EVENT_RECORD.label)}


def test_the_host_waits_for_such_an_event_too(tmp_path: Path) -> None:
    profile = waits_by_call().call("cudaEventSynchronize", 50, 70, 13)
    told = {"wait_on_stream": -1, "wait_on_cuda_event_record_corr_id": 10}
    profile.wait("Event Sync", 50, 13, stream=-1, **told)
    result = converted(None, profile.write(tmp_path / "device.json"))
    label = Evidence.SYNC_LAUNCHED_LAST.label
    assert ("gemm", "sync", label) in edges_into(result, "cudaEventSynchronize")


KINDS = {"copy kind": "DtoH", "src kind": "device", "dst kind": "pageable"}


@pytest.mark.parametrize(
    ("name", "args", "blocks"),
    [
        ("Memcpy", KINDS, True),
        ("Memcpy", {**KINDS, "dst kind": "Pageable"}, True),
        ("Memcpy", {**KINDS, "copy kind": "Device-to-Host"}, True),
        ("Memcpy", {**KINDS, "copy kind": "Host-to-Host"}, False),
        ("Memcpy", {**KINDS, "dst kind": "pinned"}, False),
        ("Memcpy", {**KINDS, "copy kind": "HtoD", "src kind": "pageable"}, False),
        ("Memcpy", {"copy kind": ["DtoH"], "dst kind": None}, False),
        ("Memcpy DtoH (Device -> Pageable)", {}, True),
        ("Memcpy DtoH (Device -> Pinned)", {}, False),
    ],
)
def test_a_copy_to_pageable_memory_blocks(
    tmp_path: Path, name: str, args: dict[str, object], blocks: bool
) -> None:
    profile = Profile().call("cudaMemcpyAsync", 165, 50, 13)
    profile.kernel(name, 170, 40, 13, cat="gpu_memcpy", bytes=400, **args)
    profile.op("aten::add", 225, 10)
    result = converted(None, profile.write(tmp_path / "device.json"))
    assert ((name, "sync", "blocking copy") in edges_into(result, "aten::add")) is blocks


def test_a_launch_does_not_last_until_its_work_has_waited(tmp_path: Path) -> None:
    """The call takes 5 us, and the work begins when the gemm has ended, or soon after it does."""
    result = converted(None, waits_by_call().op("aten::next", 400, 10).write(tmp_path / "d.json"))
    launches = result.trace.nodes.where(name="cudaLaunchKernel")
    assert [call.duration_ns for call in launches] == [10_000, 5_000]
    for scale, begins in ((1.0, 118), (0.5, 68), (2.0, 218)):
        done = replay(result.trace, scale=[("name=gemm", scale)]).trace
        (side,) = done.nodes.where(name="side")
        assert side.start_ns - Profile.base_ns == begins * 1000
