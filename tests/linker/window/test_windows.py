"""A window of a recording, chosen by steps or by an annotation."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import BACKWARD, HostRecording, Profile

from chakra_et import ChakraError, Trace, convert
from chakra_et.replay import replay

STEPS = (2, 3, 6, 7)


def recording(tmp_path: Path) -> tuple[Path, Path]:
    """Four steps, each with an operation, a kernel that runs late, and one on another thread."""
    host, profile = HostRecording(), Profile()
    host.op(3, "[pytorch|profiler|execution_trace|thread]", parent=1, tid=2)
    for place, step in enumerate(STEPS):
        first, rf, time = 100 * (place + 1), 10 * (place + 1), 1000 * place
        host.op(first, f"ProfilerStep#{step}", rf_id=rf)
        host.op(first + 1, f"op of {step}", parent=first, rf_id=rf + 1)
        host.op(first + 2, f"backward of {step}", parent=3, rf_id=rf + 2, tid=2)
        profile.op(f"ProfilerStep#{step}", time, 900, rf_id=rf, cat="user_annotation")
        profile.op(f"op of {step}", time + 10, 100, rf_id=rf + 1)
        profile.op(f"backward of {step}", time + 200, 100, rf_id=rf + 2, tid=BACKWARD)
        profile.call("launch", time + 20, 5, place + 1)
        profile.kernel(f"k of {step}", time + 1100, 10, place + 1)
    return host.write(tmp_path / "host.json"), profile.write(tmp_path / "device.json")


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"steps": "2..3"}, (2, 3)),
        ({"steps": "6"}, (6,)),
        ({"steps": "0..99"}, STEPS),
        ({"annotation": "ProfilerStep#7"}, (7,)),
        ({"annotation": "op of 3"}, ()),
    ],
)
@pytest.mark.parametrize("sides", ["both", "host", "device"])
def test_a_window_is_cut_from_both_files(
    tmp_path: Path, options: dict[str, str], steps: tuple[int, ...], sides: str
) -> None:
    host, device = recording(tmp_path)
    result = convert(
        host if sides != "device" else None, device if sides != "host" else None, **options
    )
    names = set(result.trace.nodes.name.tolist())
    kinds = ["op", "backward", *(["k"] if sides != "host" else [])]
    expected = {f"{kind} of {step}" for kind in kinds for step in steps}
    if not steps:  # without times, other threads go on until this one does
        more = {"host": ["backward of 3"], "both": ["k of 3"], "device": ["k of 3"]}
        expected = {"op of 3", *more[sides]}
    assert {name for name in names if " of " in name} == expected
    tallies = [result.report.host_nodes, *result.report.records.values()]
    for tally in tallies:
        assert tally.total == tally.kept + tally.merged + tally.left_out.total()
    if sides != "device":
        assert result.report.host_nodes.total == 3 + 3 * len(STEPS)


def test_a_window_with_nothing_in_it_says_what_there_is(tmp_path: Path) -> None:
    host, device = recording(tmp_path)
    with pytest.raises(ChakraError, match=r"ProfilerStep#2, ProfilerStep#3"):
        convert(host, device, steps="4..5")
    with pytest.raises(ChakraError, match=r"It has ProfilerStep#7, ProfilerStep#6"):
        convert(host, device, annotation="ProfileStep#7")
    with pytest.raises(ChakraError, match="It has no name like it"):
        convert(host, device, annotation="forward")
    with pytest.raises(ChakraError, match="are not a range of steps"):
        convert(host, device, steps="x")
    with pytest.raises(ChakraError, match="both steps and an annotation"):
        convert(host, device, steps="2", annotation="a")


def two_steps() -> Profile:
    """A kernel of the first of two steps runs on into the second, until 1500."""
    profile = Profile()
    for step in (1, 2):
        profile.op(f"ProfilerStep#{step}", 1000 * (step - 1), 1000, cat="user_annotation")
    return profile.call("cudaLaunchKernel", 100, 10, 1).kernel("long", 200, 1300, 1)


def second(profile: Profile, tmp_path: Path) -> Trace:
    return convert(None, profile.write(tmp_path / "device.json"), steps="2").trace


@pytest.mark.parametrize("stream", [7, 20], ids=["behind it", "made to wait for it"])
def test_what_was_launched_before_a_window_holds_what_comes_after(
    tmp_path: Path, stream: int
) -> None:
    profile = two_steps().call("cudaLaunchKernel", 1100, 10, 2).op("op", 1110, 800)
    trace = second(profile.kernel("next", 1501, 100, 2, stream=stream), tmp_path)
    (kernel,) = trace.nodes.where(name="next")
    assert kernel.release_ns == Profile.base_ns + 1_500_000
    assert (kernel.lag_ns, kernel.late_ns) == (1_000, None)
    assert not trace.nodes.where(name="long")
    done = replay(trace)
    assert done.figures[0].span_error == 0
    assert done.figures[0].delays["outside"] == {"count": 1, "ns": 390_000}
    # However fast the host is: the stream has other things to do until then.
    assert replay(trace, scale=[("is_cpu_op=True", 0)]).figures[0].span_ns == 601_000


def test_a_call_waits_for_what_was_launched_before_a_window(tmp_path: Path) -> None:
    profile = two_steps().call("cudaDeviceSynchronize", 1050, 454, 2).op("op", 1600, 100)
    trace = second(profile, tmp_path)
    (call,) = trace.nodes.where(name="cudaDeviceSynchronize")
    assert call.release_ns == Profile.base_ns + 1_500_000
    assert (call.own_start_ns, call.self_ns) == (call.release_ns, 4_000)
    assert replay(trace).figures[0].span_error == 0
    faster = replay(trace, scale=[("name~ProfilerStep", 0)])
    assert faster.figures[0].span_ns == 604_000


def test_a_whole_recording_has_no_backlog(tmp_path: Path) -> None:
    host, device = recording(tmp_path)
    for options in ({}, {"steps": "0..99"}):
        result = convert(host, device, **options)
        assert not result.trace.nodes.attributes.named("release_ns")
        assert not [w for w in result.report.warnings if "launched outside" in w]
    later = convert(host, device, steps="3..6").report.warnings
    assert [w for w in later if "1 record of the window waits" in w and "0.110 ms" in w]
