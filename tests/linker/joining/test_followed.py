"""Operations that have no time since the profiler followed other threads than theirs."""

from __future__ import annotations

from pathlib import Path

from recordings import HostRecording, Profile

from chakra_et import validate
from chakra_et.conversion import convert

SCHEMA = "aten::mm(Tensor self, Tensor mat2) -> Tensor"


def said(folder: Path, timed: dict[int, set[int]]) -> tuple[list[str], set[str]]:
    """Warnings, and the rules that speak, of ten operations on each of three threads.

    `timed` holds the places of those that are profiled, by thread.
    """
    host, profile = HostRecording(), Profile()
    for thread in (1, 2, 3):
        for place in range(10):
            number = 10 * thread + place
            host.op(number, "aten::mm", rf_id=number, tid=thread, schema=SCHEMA)
            if place in timed.get(thread, ()):
                profile.op("aten::mm", 100 * number, 50, rf_id=number, tid=4000 + thread)
    result = convert(host.write(folder / "h.json"), profile.write(folder / "d.json"))
    return result.report.warnings, validate(result.trace, "replay").rules


def test_threads_that_were_not_followed_are_told_with_the_remedy(tmp_path: Path) -> None:
    warnings, rules = said(tmp_path, {1: set(range(10))})
    (warning,) = (w for w in warnings if "no time" in w)
    assert warning.startswith("20 of 30 operators have no time: they ran on 2 threads")
    assert "profile_all_threads=True" in warning
    assert {"ET606", "ET607"} & rules == {"ET607"}


def test_other_operations_of_followed_threads_are_of_another_window(tmp_path: Path) -> None:
    warnings, rules = said(tmp_path, {thread: {0, 1} for thread in (1, 2, 3)})
    assert not any("no time" in w for w in warnings)
    assert {"ET606", "ET607"} & rules == {"ET606"}


def test_all_is_well_where_all_were_followed(tmp_path: Path) -> None:
    warnings, rules = said(tmp_path, {thread: set(range(10)) for thread in (1, 2, 3)})
    assert not any("no time" in w for w in warnings)
    assert not {"ET606", "ET607"} & rules
