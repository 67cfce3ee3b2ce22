"""One file holds one iteration of many that the other one has: it is joined with one of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accounts import converted
from hypothesis import given
from hypothesis import strategies as st
from recordings import BACKWARD, HostRecording, Profile

from chakra_et import Conversion, LinkError
from chakra_et.columns import NO_ROW
from chakra_et.converters.kineto import read_device
from chakra_et.converters.pytorch import read_host
from chakra_et.linker.joining.iterations import find_iterations
from chakra_et.linker.joining.join import join_host
from chakra_et.linker.window import cut_device, cut_host, window

LAYER = ["aten::linear", "aten::t", "aten::addmm", "aten::relu"]
STEP = ["aten::embedding", *LAYER, *LAYER, "aten::nll_loss", "aten::add_"]
BACK = ["NllLossBackward0", "AddmmBackward0", "aten::mm", "EmbeddingBackward0"]


def iteration_host(
    *, size: int = 8, seq: int = -1, group: str = "", count: int = 1, flat: bool = True
) -> HostRecording:
    """A host trace of some iterations, with a backward thread and a collective."""
    host, number = HostRecording(flat=flat), 3
    host.op(900, "[pytorch|profiler|execution_trace|thread]", parent=1, tid=2)
    for place in range(count):
        for name in STEP:
            inputs: Any = ([[1, 2, 0, 64, 4, "cpu"]], [[size + place, 16]], ["Tensor(float)"])
            more = {} if flat else {"pg_name": group} if name == "aten::add_" else {}
            host.op(number, name, inputs=inputs, **more)
            if flat and name == "aten::linear":
                host.nodes[-1]["seq_id"] = seq
            number += 1
        for name in BACK:
            host.op(number, name, parent=900, tid=2)
            number += 1
    return host


def iteration_profile(
    count: int,
    *,
    before: list[str] | None = None,
    sizes: list[int] | None = None,
    groups: list[str] | None = None,
    gaps: bool = False,
) -> Profile:
    """A profile of iterations, 1000 us each, without ids that a host trace has."""
    profile = Profile()
    for place, name in enumerate(before or []):
        profile.op(name, -100 + 2 * place, 1)
    for step in range(count):
        profile.op(f"ProfilerStep#{step + 7}", 1000 * step, 999, cat="user_annotation")
        for place, name in enumerate(STEP):
            args: dict[str, Any] = {"Input Dims": [[(sizes or [8] * count)[step], 16]]}
            if name == "aten::linear":
                args["Sequence number"] = 100 * step + 5
            if groups is not None and name == "aten::add_":
                args["Process Group Name"] = groups[step]
            start = 1000 * step + 20 * place + 1
            profile.op(name, start, 10, **args)
            if gaps and place == step:
                profile.op("aten::item", start + 12, 2)
        for place, name in enumerate(BACK):
            profile.op(name, 1000 * step + 500 + 20 * place, 10, tid=BACKWARD)
    return profile


def joined_steps(result: Conversion) -> set[int]:
    """The iterations whose records host nodes have been merged with, by the times of these."""
    base = 1_700_000_000_000_000_000
    nodes = [n for n in result.trace.nodes if n.host_id is not None and n.thread is not None]
    return {(node.start_ns - base) // 1_000_000 for node in nodes if node.start_ns is not None}


def convert(folder: Path, host: HostRecording, profile: Profile) -> Conversion:
    return converted(host.write(folder / "h.json"), profile.write(folder / "d.json.gz"))


OPS = len(STEP) + len(BACK)


@pytest.mark.parametrize("count", [2, 3, 12])
@pytest.mark.parametrize("before", [[], ["aten::item", "aten::linear", "aten::t"]])
def test_several_that_fit_are_told(tmp_path: Path, count: int, before: list[str]) -> None:
    result = convert(tmp_path, iteration_host(), iteration_profile(count, before=before))
    join = result.report.joins[0]
    assert (join.by, join.matched, join.of) == ("order within each thread", OPS, OPS)
    assert joined_steps(result) == {0}
    (warning,) = [w for w in result.report.warnings if "parts like the host trace" in w]
    assert f"the profile holds {count} parts" in warning
    assert f"{count} of them fit as well" in warning


@pytest.mark.parametrize("favoured", [0, 1, 3])
@pytest.mark.parametrize("gaps", [False, True])
def test_shapes_favour_a_place(tmp_path: Path, favoured: int, gaps: bool) -> None:
    sizes = [8 + abs(step - favoured) for step in range(4)]
    profile = iteration_profile(4, sizes=sizes, gaps=gaps)
    result = convert(tmp_path, iteration_host(size=8), profile)
    assert joined_steps(result) == {favoured}
    assert result.report.joins[0].matched == OPS
    assert any(f"part number {favoured + 1}" in w for w in result.report.warnings)
    assert any("input shapes favour" in w for w in result.report.warnings)


@pytest.mark.parametrize("favoured", [0, 2])
def test_sequence_numbers_favour_a_place(tmp_path: Path, favoured: int) -> None:
    result = convert(tmp_path, iteration_host(seq=100 * favoured + 5), iteration_profile(3))
    assert joined_steps(result) == {favoured}
    assert any("ids favour" in w for w in result.report.warnings)


@pytest.mark.parametrize("favoured", [0, 1])
def test_groups_favour_a_place(tmp_path: Path, favoured: int) -> None:
    step = [name if name != "aten::add_" else "record_param_comms" for name in STEP]
    host = iteration_host(flat=False, group="7")
    groups = ["7" if place == favoured else "8" for place in range(2)]
    profile = iteration_profile(2, groups=groups)
    for node in host.nodes:
        node["name"] = node["name"].replace("aten::add_", step[-1])
    for event in profile.events:
        event["name"] = event["name"].replace("aten::add_", step[-1])
    result = convert(tmp_path, host, profile)
    assert joined_steps(result) == {favoured}
    assert any("process groups favour" in w for w in result.report.warnings)


@pytest.mark.parametrize("count", [2, 5])
def test_the_profile_may_hold_the_part(tmp_path: Path, count: int) -> None:
    # Sizes of inputs grow by one in each iteration of the host trace.
    sizes = [8 + count - 1]
    result = convert(tmp_path, iteration_host(count=count), iteration_profile(1, sizes=sizes))
    assert result.report.joins[0].matched == OPS
    timed = [n.host_id for n in result.trace.nodes if n.thread is not None and n.host_id]
    assert min(timed) == 3 + (count - 1) * OPS
    assert any(f"the host trace holds {count} parts like the profile" in w
               for w in result.report.warnings)  # fmt: skip


def test_files_of_other_programs_are_still_refused(tmp_path: Path) -> None:
    profile = Profile()
    for place in range(40):
        profile.op(f"aten::other{place % 7}", 10 * place, 5)
    with pytest.raises(LinkError, match="do not belong together"):
        convert(tmp_path, iteration_host(), profile)


def with_ids(host: HostRecording, profile: Profile, first: int) -> None:
    """Record-function ids that are not of the same run."""
    for number, node in enumerate(host.nodes):
        node["rf_id"] = first + number if node["id"] > 2 and node["id"] != 900 else 0
    for number, event in enumerate(profile.events):
        event["args"]["Record function id"] = 1 + number


@pytest.mark.parametrize(
    ("first", "told"),
    [(5000, "no record-function id occurs in both"), (2, "occur in both files and do not agree")],
)
def test_ids_of_another_run_do_not_hide_the_part(tmp_path: Path, first: int, told: str) -> None:
    host, profile = iteration_host(), iteration_profile(3)
    with_ids(host, profile, first)
    result = convert(tmp_path, host, profile)
    assert result.report.joins[0].matched == OPS
    assert any(told in warning for warning in result.report.warnings)


def test_whole_files_whose_ids_disagree_are_refused(tmp_path: Path) -> None:
    host, profile = iteration_host(), iteration_profile(1)
    with_ids(host, profile, 2)
    with pytest.raises(LinkError, match="names behind"):
        convert(tmp_path, host, profile)


@given(
    st.lists(st.integers(0, 6), min_size=4, max_size=30, unique=False),
    st.integers(1, 5),
    st.lists(st.integers(7, 9), max_size=6),
)
def test_every_place_of_a_sequence_is_found(
    short: list[int], count: int, between: list[int]
) -> None:
    # An item that stands once tells the places of all; what lies between them is told apart.
    one = np.array([*short, 100], np.int64)
    whole = np.array(([*one.tolist(), *between]) * count, np.int64)
    found = find_iterations(one, whole, {})
    assert found is not None
    period = len(one) + len(between)
    assert [begin for begin, _ in found.places] == [period * k for k in range(count)]
    assert (found.chosen, found.alike) == (0, count)


def test_nothing_is_found_of_another_sequence() -> None:
    assert find_iterations(np.arange(20), np.arange(100, 300), {}) is None


@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("short", ["host trace", "profile"])
def test_real_steps_are_found_without_ids(data: Path, step: int, short: str) -> None:
    # Record-function ids tell the truth; they are hidden from the join.
    folder, chosen = data / "torch213" / "tp_2rank", window(str(step), None)
    assert chosen is not None
    host, device = read_host(folder / "host.0.json.gz"), read_device(folder / "device.0.json.gz")
    if short == "profile":
        device = cut_device(device, chosen)
    else:
        host = cut_host(host, chosen)
    truth, nothing = device.rf_id, np.zeros_like(device.rf_id)
    join = join_host(host, replace(device, rf_id=nothing, external_id=nothing))
    joined = join.record != NO_ROW
    assert np.array_equal(truth[join.record[joined]], host.rf_id[joined])
    assert np.count_nonzero(joined) == 2206
    assert f"part number {step}, which" in join.warnings[0]
