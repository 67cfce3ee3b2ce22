"""A window of a long host trace is read without the rest, and gives what cutting all gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recordings import HostRecording

import chakra_et
from chakra_et.converters.pytorch.reader import read_host
from chakra_et.converters.pytorch.window_reader import read_window
from chakra_et.linker.window import window

STEPS = 30
THREAD, BACKWARD = 1, 2
PER_STEP = 6


def in_steps(steps: int = STEPS, *, unrecorded: bool = False) -> HostRecording:
    """Steps that call an operation with one inside, and another thread's, which begins in between.

    As PyTorch writes them: when they return. Every tenth step has an operation whose caller was
    never written, if they are `unrecorded`.
    """
    host = HostRecording()
    host.op(3, "[pytorch|profiler|execution_trace|thread]", parent=1, tid=BACKWARD)
    for step in range(steps):
        top = 10 * (step + 1)
        host.op(top + 2, "inner", parent=top + 1, rf_id=top + 2, inputs=([step], [[]], ["Int"]))
        host.op(top + 3, "behind", parent=3, tid=BACKWARD, rf_id=top + 3)
        host.op(top + 1, "outer", parent=top, rf_id=top + 1, collective_name=f"c{step}")
        host.op(top, f"ProfilerStep#{step}", rf_id=top)
        lost = unrecorded and step % 10 == 0
        host.op(top + 5, "between", parent=top + 4 if lost else 2, rf_id=top + 5)
    return host


def converted(monkeypatch: pytest.MonkeyPatch, apart: bool, path: Path, **options: Any) -> Any:
    """The bytes of the ET and the report, or the error."""
    monkeypatch.setattr("chakra_et.inputs.LONG_BYTES", 0 if apart else 1 << 40)
    out = path.with_name("out.et")
    try:
        report = chakra_et.convert(path, None, out, **options).report.as_dict()
    except chakra_et.ChakraError as error:
        return str(error)
    return out.read_bytes(), report


@pytest.mark.parametrize("as_written", [True, False], ids=["returned first", "called first"])
@pytest.mark.parametrize("unrecorded", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"steps": "7"},
        {"steps": "10..12"},
        {"steps": "29"},
        {"annotation": "outer"},
        {"steps": "99"},
    ],
    ids=str,
)
def test_a_window_that_was_read_alone_equals_one_that_was_cut_from_all(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, str],
    unrecorded: bool,
    as_written: bool,
) -> None:
    host = in_steps(unrecorded=unrecorded)
    if not as_written:
        host.nodes.sort(key=lambda node: int(node["id"]))
    path = host.write(tmp_path / "host.json")
    whole, apart = (converted(monkeypatch, way, path, **options) for way in (False, True))
    assert apart == whole
    assert isinstance(whole, str) == (options == {"steps": "99"})


REAL = {
    "torch213/transformer_5steps/host.0.json.gz": [{"annotation": "aten::addmm"}],
}


@pytest.mark.parametrize("name", REAL)
def test_windows_of_real_traces_are_equal_too(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for options in REAL[name]:
        monkeypatch.setattr("chakra_et.inputs.LONG_BYTES", 1 << 40)
        whole = chakra_et.convert(data / name, None, tmp_path / "whole.et", **options).report
        monkeypatch.setattr("chakra_et.inputs.LONG_BYTES", 0)
        apart = chakra_et.convert(data / name, None, tmp_path / "apart.et", **options).report
        assert (tmp_path / "apart.et").read_bytes() == (tmp_path / "whole.et").read_bytes()
        assert apart.host_nodes == whole.host_nodes


@pytest.mark.parametrize("pure", [True, False])
def test_no_more_is_held_than_the_window_and_its_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pure: bool
) -> None:
    """However long the recording is, and whatever reads it; neither are texts of the rest."""
    if pure:
        monkeypatch.setattr("chakra_et.converters.pytorch.compiled.kernel", lambda: None)
    held = []
    for steps in (STEPS, 4 * STEPS):
        path = in_steps(steps).write(tmp_path / f"{steps}.json")
        wanted = window("20", None)
        assert wanted is not None
        host = read_window(path, False, wanted.chosen)
        assert len(host) + host.outside == len(read_host(path)) == 3 + 5 * steps
        held.append((len(host), len(host.texts), len(host.attributes["collective_name"].rows)))
    # The four nodes of a step, the one that ends it, and three roots.
    assert held == [(8, 2, 1), (8, 2, 1)]


def test_traces_whose_nodes_depend_on_all_others_are_read_whole(tmp_path: Path) -> None:
    twice, flat, odd = in_steps(), HostRecording(flat=True), in_steps()
    twice.nodes.append(dict(twice.nodes[-1]))
    flat.op(10, "ProfilerStep#20").op(11, "inner", parent=10)
    odd.op(1 << 63, "between")
    for host in (twice, flat, odd):
        path = host.write(tmp_path / "host.json")
        whole, part = read_host(path), read_window(path, False, lambda name: name == "inner")
        assert (len(part), part.outside) == (len(whole), 0)


def test_of_a_window_that_is_not_there_only_names_are_held(tmp_path: Path) -> None:
    path = in_steps().write(tmp_path / "host.json")
    host = read_window(path, False, lambda _: False)
    assert len(host) == 0
    assert set(host.names) == {node["name"] for node in json.loads(path.read_text())["nodes"]}
