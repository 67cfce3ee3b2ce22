"""A window of a recording, chosen by steps or by an annotation."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import BACKWARD, HostRecording, Profile

from chakra_et import ChakraError, convert

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
    with pytest.raises(ChakraError, match="are no steps"):
        convert(host, device, steps="x")
    with pytest.raises(ChakraError, match="both steps and an annotation"):
        convert(host, device, steps="2", annotation="a")
