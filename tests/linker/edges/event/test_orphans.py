"""Work that was launched before the window: what it waited for is told by times alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from accounts import converted, edges_into, names
from recordings import Profile

from chakra_et.linker.evidence import Evidence
from chakra_et.replay import replay

TIMES = ("event", Evidence.EVENT_ORPHANS.label)
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def backlog(*, starts: float, before: float | None = None) -> Profile:
    """Kernels of a stream, and an all-reduce on another one; the calls lie before the window."""
    profile = Profile().kernel("first", 0, 50, 901).kernel("grad", 52, 48, 902)
    profile.kernel("next", 102, 200, 903)
    if before is not None:
        profile.kernel("reduce before", before, 10, 904, stream=9)
    return profile.kernel(REDUCE, starts, 60, 905, stream=9)


def guessed(profile: Profile, folder: Path, name: str = REDUCE) -> set[str]:
    result = converted(None, profile.write(folder / "device.json"))
    return {s for s, *how in edges_into(result, name) if tuple(how) == TIMES}


@pytest.mark.parametrize("before", [None, 20, 60])
def test_late_work_waits_for_what_has_just_ended(tmp_path: Path, before: float | None) -> None:
    assert guessed(backlog(starts=105, before=before), tmp_path) == {"grad"}


def test_work_that_its_stream_explains_waits_for_nothing_else(tmp_path: Path) -> None:
    assert guessed(backlog(starts=105, before=80), tmp_path) == set()


def test_work_that_begins_long_after_all_else_waits_for_nothing_else(tmp_path: Path) -> None:
    assert guessed(backlog(starts=121, before=20), tmp_path) == set()


def test_what_was_launched_in_the_window_cannot_have_been_waited_for(tmp_path: Path) -> None:
    profile = backlog(starts=105, before=20)
    profile.call("cudaLaunchKernel", 10, 5, 902)
    assert guessed(profile, tmp_path) == set()


def test_records_of_waits_do_not_tell_of_what_was_asked_for_before(tmp_path: Path) -> None:
    profile = backlog(starts=105, before=20)
    profile.call("cudaStreamSynchronize", 300, 20, 990).wait("Stream Sync", 300, 990, stream=7)
    assert guessed(profile, tmp_path) == {"grad"}


def test_who_uses_the_result_waits_for_it(tmp_path: Path) -> None:
    profile = backlog(starts=105).kernel("optimizer", 400, 20, 906)
    (reduce,) = (event for event in profile.events if event["name"] == REDUCE)
    reduce["dur"] = 290
    assert guessed(profile, tmp_path, "optimizer") == {REDUCE}


def test_an_operation_that_is_known_explains_its_work(tmp_path: Path) -> None:
    """Without calls, an id names the operation: work that starts as it ends is not late."""
    for ends, found in ((100, set()), (60, {"grad"})):
        profile = backlog(starts=105, before=20)
        profile.op("all_reduce", 40, ends - 40, **{"External id": 7})
        profile.events[4]["args"]["External id"] = 7
        assert guessed(profile, tmp_path) == found


def test_a_device_that_is_slower_before_it_delays_it(tmp_path: Path) -> None:
    path = backlog(starts=105, before=20).write(tmp_path / "device.json")
    result = converted(None, path)
    done = replay(result.trace, scale=[("name=grad", 2)])
    start = dict(zip(names(result), done.trace.nodes.start_ns.tolist(), strict=True))
    assert start[REDUCE] - start["first"] == (105 + 48) * 1000
