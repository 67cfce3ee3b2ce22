"""A thread that waits for a transfer at its end: seen by what was open around, which ends then."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import Profile

from chakra_et.conversion import Conversion, convert
from chakra_et.replay import replay

WORKER = 4009


def recording(*, ends: float = 1050, asked_from: float = 0) -> Profile:
    """A step whose last operation asks a worker for a transfer, which runs from 40 to 1000 us."""
    return (
        Profile()
        .op("step", 0, ends, cat="user_annotation")
        .op("c10d::allreduce_", asked_from, 30 - asked_from, rf_id=10)
        .op("gloo:all_reduce", 40, 960, rf_id=11, tid=WORKER, cat="user_annotation")
    )


def converted(profile: Profile, folder: Path) -> Conversion:
    return convert(None, profile.write(folder / "device.json"))


def span_us(result: Conversion, factor: float = 1.0) -> float:
    """The replayed span where the transfer takes so much longer."""
    done = replay(result.trace, scale=[("name=gloo:all_reduce", factor)])
    return done.figures[0].span_ns / 1000


def test_what_is_left_of_the_thread_begins_when_the_transfer_has_ended(tmp_path: Path) -> None:
    result = converted(recording(), tmp_path)
    (rest,) = (n for n in result.trace.nodes if n.rest_of)
    assert (rest.name, rest.duration_ns) == ("step", 50_000)
    (transfer,) = result.trace.nodes.where(name="gloo:all_reduce")
    kinds = {kind.label for source, kind, _ in result.trace.edges.into(rest.row)
             if int(source) == transfer.id}  # fmt: skip
    assert kinds == {"thread"}


@pytest.mark.parametrize(("factor", "span"), [(1.0, 1050), (0.5, 570), (2.0, 2010)])
def test_a_faster_transfer_lets_the_thread_end_earlier(
    tmp_path: Path, factor: float, span: float
) -> None:
    assert span_us(converted(recording(), tmp_path), factor) == span


def test_a_call_that_still_ran_when_the_transfer_began_keeps_its_time(tmp_path: Path) -> None:
    profile = recording()
    profile.op("c10d::allreduce_", 40, 100, rf_id=12)
    profile.op("gloo:all_reduce", 60, 900, rf_id=13, tid=WORKER + 1, cat="user_annotation")
    result = converted(profile, tmp_path)
    assert span_us(result) == 1050
    # The calls, and what is left of the thread.
    assert span_us(result, 0.0) == pytest.approx(140 + 50, abs=10)


def test_a_range_that_goes_on_for_long_did_not_wait(tmp_path: Path) -> None:
    result = converted(recording(ends=3000), tmp_path)
    assert span_us(result) == span_us(result, 0.1) == 3000


def test_a_thread_that_did_something_else_meanwhile_did_not_wait(tmp_path: Path) -> None:
    result = converted(recording().op("compute", 100, 800, rf_id=12), tmp_path)
    assert span_us(result) == span_us(result, 0.1) == 1050
