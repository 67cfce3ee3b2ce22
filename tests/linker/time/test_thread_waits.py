"""What a host thread waited for, where only times tell: who did something woke it, nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import BACKWARD, Profile

from chakra_et.conversion import convert
from chakra_et.model import EdgeKind


def woken_by(profile: Profile, folder: Path, name: str) -> set[str | None]:
    """What `name` waits for on other threads."""
    trace = convert(None, profile.write(folder / "device.json")).trace
    (node,) = trace.nodes.where(name=name)
    names = {other.id: other.name for other in trace.nodes}
    return {names[source] for source, kind, _ in node.edges if kind is EdgeKind.THREAD}


def two_threads() -> Profile:
    """One thread works for 1000 us; the other has nothing to do from 200 us on."""
    return Profile().op("work", 0, 1000).op("before", 100, 100, tid=BACKWARD)


def test_an_operation_follows_what_ended_elsewhere(tmp_path: Path) -> None:
    assert woken_by(two_threads().op("after", 1020, 50, tid=BACKWARD), tmp_path, "after") == {
        "work"
    }


def test_the_end_of_an_annotation_wakes_nobody(tmp_path: Path) -> None:
    profile = Profile().op("step", 0, 1000, cat="user_annotation").op("work", 10, 300)
    profile.op("before", 100, 100, tid=BACKWARD).op("after", 1020, 50, tid=BACKWARD)
    assert woken_by(profile, tmp_path, "after") == set()


@pytest.mark.parametrize("call", ["cudaEventQuery", "hipStreamQuery"])
def test_who_asks_whether_work_is_done_was_not_woken(tmp_path: Path, call: str) -> None:
    profile = two_threads().call(call, 1020, 5, 1, tid=BACKWARD)
    assert woken_by(profile, tmp_path, call) == set()


def test_threads_of_nothing_but_annotations_wake_nobody(tmp_path: Path) -> None:
    profile = Profile().op("step", 0, 1000, cat="user_annotation")
    profile.op("loader", 1020, 50, cat="user_annotation", tid=BACKWARD)
    assert woken_by(profile, tmp_path, "loader") == set()
