"""Host traces to whose nodes another tool has added times, `ts` and `dur` in microseconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from accounts import callers, converted
from recordings import HostRecording, Profile

from chakra_et import Conversion
from chakra_et.converters.pytorch import read_host
from chakra_et.model import UNKNOWN_NS, EdgeKind

BASE = 1694128201435418
SPANS: dict[str, tuple[int, float, float, int]] = {
    "aten::linear": (3, 0, 100, 2),
    "aten::t": (4, 10, 5, 3),
    "aten::addmm": (5, 20, 70, 3),
    "aten::relu": (6, 120.5, 30.25, 2),
}
"""Id, start and duration in us, and caller."""


def timed(*, flat: bool, base: int = BASE, text: bool = False) -> HostRecording:
    host = HostRecording(flat=flat)
    for name, (number, start, lasts, parent) in SPANS.items():
        host.op(number, name, parent=parent, rf_id=number)
        times: dict[str, Any] = {"ts": base + start, "dur": lasts}
        host.nodes[-1] |= {key: str(t) for key, t in times.items()} if text else times
    return host


def nodes(result: Conversion) -> dict[str, tuple[int | None, int | None]]:
    found = (n for n in result.trace.nodes if n.name in SPANS)
    return {node.name: (node.start_ns, node.inclusive_ns) for node in found}


def expected(base: int = BASE) -> dict[str, tuple[int, int]]:
    return {
        name: (base * 1000 + round(start * 1000), round(lasts * 1000))
        for name, (_, start, lasts, _) in SPANS.items()
    }


@pytest.mark.parametrize("flat", [True, False], ids=["layout A", "layout E"])
@pytest.mark.parametrize("text", [False, True], ids=["numbers", "text"])
@pytest.mark.parametrize("name", ["h.json", "h.json.gz"])
def test_times_of_nodes_are_read(tmp_path: Path, flat: bool, text: bool, name: str) -> None:
    result = converted(timed(flat=flat, text=text).write(tmp_path / name))
    assert nodes(result) == expected()
    assert callers(result, "aten::addmm") == {"aten::linear"}
    assert not any("unknown host node key" in w for w in result.report.warnings)
    join = result.report.joins[0]
    assert (join.by, join.matched, join.of) == ("the file itself", 4, 6)
    tally = result.report.host_nodes
    assert (tally.total, tally.kept) == (6, 6)
    assert list(result.report.records) == []


def test_operations_of_a_thread_follow_each_other_in_time(tmp_path: Path) -> None:
    result = converted(timed(flat=True).write(tmp_path / "h.json"))
    (relu,) = result.trace.nodes.where(name="aten::relu")
    before = [result.trace.node(s).name for s, kind, _ in relu.edges if kind is EdgeKind.PROGRAM]
    assert before == ["aten::addmm"]


def test_nodes_without_a_time_are_kept_without_one(tmp_path: Path) -> None:
    host = timed(flat=True)
    host.op(7, "aten::unmatched").op(8, "aten::late", rf_id=8).op(9, "aten::short")
    host.nodes[-3] |= {"ts": 0, "dur": 0}
    host.nodes[-2] |= {"ts": None, "dur": None}
    host.nodes[-1] |= {"dur": 7}
    result = converted(host.write(tmp_path / "h.json"))
    starts = {n.name: n.start_ns for n in result.trace.nodes}
    assert nodes(result) == expected()
    for name in ("aten::unmatched", "aten::late", "aten::short"):
        assert starts[name] in (None, UNKNOWN_NS)
    assert "1 duration of a node has no start and was left out" in result.report.warnings


def test_times_from_another_base_are_told(tmp_path: Path) -> None:
    result = converted(timed(flat=True, base=0).write(tmp_path / "h.json"))
    assert nodes(result) == expected(0)
    assert "times count from a base that the file does not tell" in result.report.warnings


def test_times_of_the_profile_come_first(tmp_path: Path) -> None:
    profile = Profile()
    for name, (number, start, lasts, _) in SPANS.items():
        profile.op(name, start + 1000, lasts, rf_id=number)
    host = timed(flat=False).write(tmp_path / "h.json")
    result = converted(host, profile.write(tmp_path / "d.json"))
    assert nodes(result)["aten::t"] == (profile.base_ns + 1_010_000, 5000)
    assert any("the profile has them" in warning for warning in result.report.warnings)


def test_a_host_trace_of_pytorch_has_no_times(tmp_path: Path) -> None:
    host = read_host(HostRecording().op(3, "a").write(tmp_path / "h.json"))
    assert not host.is_timed
    result = converted(tmp_path / "h.json")
    assert all(node.inclusive_ns is None for node in result.trace.nodes)
