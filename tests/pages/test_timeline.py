"""The timeline draws everything, or says what it joined."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from places import EXAMPLES
from runs import MS, built, kernels

from chakra_et.conversion import trace_set
from chakra_et.directory import convert_files
from chakra_et.pages import timeline
from chakra_et.pages.path import run_path
from chakra_et.pages.ranks import Run, make_run
from chakra_et.pages.timeline import Timeline, make_timeline


@pytest.fixture(scope="module")
def recorded() -> Run:
    return make_run(trace_set(convert_files(EXAMPLES / "ddp_2rank", None)))


def drawn(run: Run, window: tuple[int, int] | None = None) -> Timeline:
    ranks = {str(rank): times for rank, times in run.ranks.items()}
    return make_timeline(ranks, run.span, run_path(run), window)


def test_each_operation_that_takes_time_is_a_box(recorded: Run) -> None:
    found = drawn(recorded)
    timed = sum(
        int((times.shown & (times.end > times.start)).sum()) for times in recorded.ranks.values()
    )
    assert found.operations == len(found.boxes) == timed
    assert found.joined == 0
    assert (found.boxes.count == 1).all()


def test_short_operations_join_and_none_is_lost(
    recorded: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = drawn(recorded)
    monkeypatch.setattr(timeline, "MOST_BOXES", 500)
    found = drawn(recorded)
    assert len(found.boxes) <= 500
    assert int(found.boxes.count.sum()) == whole.operations
    assert int(found.boxes.busy.sum()) == int(whole.boxes.length.sum())
    assert found.joined == int((whole.boxes.length < found.joined_ns).sum())
    one = found.boxes.count == 1
    assert (found.boxes.length[~one] <= 2 * found.joined_ns).all()


def test_a_long_path_is_drawn_from_its_begin_to_its_end_in_equal_stretches(
    recorded: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = drawn(recorded)
    assert whole.path_step_ns == 0
    monkeypatch.setattr(timeline, "MOST_STRETCHES", 100)
    found = drawn(recorded)
    assert 40 < len(found.path["lane"]) <= 100
    assert found.path_step_ns == -(-(found.end_ns - found.begin_ns) // 100)
    start, length = found.path["start"], found.path["length"]
    assert (start[:-1] + length[:-1] == start[1:]).all()
    for place in (0, -1):
        assert start[place] + (place and length[place]) == (
            whole.path["start"][place] + (place and whole.path["length"][place])
        )


def test_a_window_holds_what_lies_in_it() -> None:
    found = drawn(make_run(built(kernels, 1)), (5 * MS, 7 * MS))
    assert found.end_ns - found.begin_ns == 2 * MS
    names = [found.names[code] for code in found.boxes.name]
    assert dict(zip(names, found.boxes.length.tolist(), strict=True)) == {
        "gemm": MS,
        "softmax": MS,
    }


def test_columns_can_be_unpacked(recorded: Run) -> None:
    found = drawn(recorded)
    told = found.as_dict()

    def unpacked(column: list[str]) -> np.ndarray[Any, Any]:
        kind, text = column
        return np.frombuffer(base64.b64decode(text), f"<{kind}")

    for name in ("lane", "depth", "kind", "name", "start", "length", "count", "busy", "node"):
        assert unpacked(told["boxes"][name]).tolist() == getattr(found.boxes, name).tolist()


def test_calls_lie_below_their_callers(recorded: Run) -> None:
    boxes = drawn(recorded).boxes
    order = np.lexsort((boxes.depth, boxes.start, boxes.lane))
    for lane in np.unique(boxes.lane).tolist():
        mine = order[boxes.lane[order] == lane]
        for depth in range(1, 4):
            below = mine[boxes.depth[mine] == depth]
            above = mine[boxes.depth[mine] == depth - 1]
            place = np.searchsorted(boxes.start[above], boxes.start[below], "right") - 1
            assert (place >= 0).all()
            end = boxes.start[above] + boxes.length[above]
            assert (boxes.start[below] < end[place]).all()
