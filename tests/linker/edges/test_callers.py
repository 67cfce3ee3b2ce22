"""Callers as the host trace names them count where the profile's times allow it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from accounts import callers, converted
from hypothesis import given
from hypothesis import strategies as st
from recordings import BACKWARD, HostRecording, Profile

from chakra_et import Conversion
from chakra_et.model import EdgeKind


def false_calls(result: Conversion) -> list[tuple[str, str]]:
    """Host nodes that began on their caller's thread when it had not begun, or had ended."""
    by_id = {node.id: node for node in result.trace.nodes}
    found = []
    for node in result.trace.nodes:
        for source, kind, _ in node.edges:
            caller = by_id[source]
            timed = kind is EdgeKind.CALL and node.thread is not None is not node.start_ns
            if not timed or caller.thread != node.thread or caller.inclusive_ns is None:
                continue
            assert node.start_ns is not None
            assert caller.start_ns is not None
            if not 0 <= node.start_ns - caller.start_ns <= caller.inclusive_ns + 1:
                found.append((caller.name, node.name))
    return found


def pair(folder: Path, spans: dict[str, tuple[float, float, str]], **tids: int) -> Conversion:
    """A host trace and a profile of operations: begin, end, and the caller that the host names."""
    host, profile = HostRecording(), Profile()
    number = {"thread": 2} | {name: 3 + place for place, name in enumerate(spans)}
    for name, (begin, end, caller) in spans.items():
        host.op(number[name], name, rf_id=number[name], parent=number[caller])
        tid = {"tid": tids[name]} if name in tids else {}
        profile.op(name, begin, end - begin, rf_id=number[name], **tid)
    return converted(host.write(folder / "h.json"), profile.write(folder / "d.json"))


def test_nesting_decides_where_the_named_caller_had_ended(tmp_path: Path) -> None:
    result = pair(
        tmp_path,
        {
            "evaluate": (0, 100, "thread"),
            "Backward": (2, 60, "evaluate"),
            "mm": (10, 50, "Backward"),
            "sum": (64, 90, "Backward"),
            "fill": (70, 80, "sum"),
        },
    )
    assert callers(result, "mm") == {"Backward"}
    assert callers(result, "sum") == {"evaluate"}
    assert callers(result, "fill") == {"sum"}
    assert any(warning.startswith("1 operation began when") for warning in result.report.warnings)


def test_where_nothing_is_around_the_nearest_possible_caller_counts(tmp_path: Path) -> None:
    result = pair(
        tmp_path,
        {"outer": (0, 30, "thread"), "inner": (2, 20, "outer"), "late": (40, 50, "inner")},
    )
    assert callers(result, "late") == {"[pytorch|profiler|execution_trace|thread]"}


def test_a_caller_that_had_not_begun_is_none(tmp_path: Path) -> None:
    spans = {"early": (0, 10, "later"), "later": (20, 30, "thread")}
    assert "later" not in callers(pair(tmp_path, spans), "early")


def test_what_another_thread_names_is_told_by_nesting(tmp_path: Path) -> None:
    spans = {"main": (0, 100, "thread"), "wrapper": (10, 90, "thread"), "mm": (20, 30, "main")}
    result = pair(tmp_path, spans, wrapper=BACKWARD, mm=BACKWARD)
    assert callers(result, "mm") == {"wrapper"}


@pytest.mark.parametrize(
    ("end", "believed"), [(20, True), (19, True), (18, False), (19.999, True), (19.998, False)]
)
def test_the_last_digit_of_a_time_contradicts_nobody(
    tmp_path: Path, end: float, believed: bool
) -> None:
    spans = {"around": (0, 50, "thread"), "caller": (1, end, "around")}
    result = pair(tmp_path, {**spans, "called": (20, 30, "caller")})
    assert callers(result, "called") == {"caller" if believed else "around"}


@st.composite
def calls(draw: st.DrawFn) -> dict[str, tuple[float, float, str]]:
    """Operations of one thread, one inside another or behind it, with callers of any kind."""
    spans: dict[str, tuple[float, float, str]] = {}
    open_now: list[tuple[str, int]] = []
    for time, begins in enumerate(draw(st.lists(st.booleans(), max_size=24)) + [False] * 24):
        if begins:
            name = f"op {len(spans)}"
            caller = draw(st.sampled_from(["thread", *spans]))
            spans[name] = (2 * time, 0, caller)
            open_now.append((name, time))
        elif open_now:
            name, _ = open_now.pop()
            begin, _, caller = spans[name]
            spans[name] = (begin, 2 * time, caller)
    return spans


@given(calls())
def test_no_operation_is_called_by_what_had_ended(
    spans: dict[str, tuple[float, float, str]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert false_calls(pair(Path(folder), spans)) == []


def test_no_real_operation_is_called_by_what_had_ended(data: Path) -> None:
    folder = data / "torch213" / "ddp_2rank"
    result = converted(folder / "host.0.json.gz", folder / "device.0.json.gz")
    assert false_calls(result) == []
    assert any(warning.startswith("185 operations began") for warning in result.report.warnings)
