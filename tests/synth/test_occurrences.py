"""Durations by occurrence: told apart where they differ, and kept in the place where they were."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from traces import node, trace

from chakra_et.definitions import EdgeKind
from chakra_et.model import Trace, TraceSet
from chakra_et.synth import Fitted, Sampler, fit
from chakra_et.synth.graph import _bands
from chakra_et.synth.occurrences import partition
from chakra_et.synth.view import view_of

LONG = 3_000_000


def recorded(rank: int) -> Trace:
    """Host operations of one kind, of which the third one waits long; then a launch and a kernel.

    An odd rank has an operation more between the launch and the kernel.
    """
    took = [17_000 + 1000 * rank, 19_000, LONG + 9_000 * rank, 18_000]
    names = ["aten::foo"] * 4 + ["cudaLaunchKernel"] + ["aten::view"] * (rank % 2)
    took += [8_000, 2_000][: len(names) - 4]
    nodes = [
        node(1 + i, name=name, took=t, is_cpu_op=True, thread=1, deps=(i,) * (i > 0),
             kind=EdgeKind.PROGRAM)
        for i, (name, t) in enumerate(zip(names, took, strict=True))
    ]  # fmt: skip
    kernel = node(9, name="aten::mm", took=5_000, stream=7, is_cpu_op=False, deps=(5,),
                  kind=EdgeKind.LAUNCH)  # fmt: skip
    return trace(*nodes, kernel, rank=rank)


def learned() -> Fitted:
    """What is learned of four such ranks."""
    return fit([TraceSet({rank: recorded(rank) for rank in range(4)})])


def test_the_occurrence_that_takes_long_is_the_one_that_did() -> None:
    model = learned().model
    for seed in range(5):
        for t in Sampler(model, 4, 2, seed=seed).traces().values():
            took = [n.duration_ns for n in t.nodes if n.is_cpu_op and n.duration_ns > 10_000]
            long = [LONG <= d <= LONG + 27_000 for d in took]
            assert long == [False, False, True, False] * 2


def test_durations_are_as_coarse_as_what_was_learned() -> None:
    model = learned().model
    assert model.parts[0].grain_ns == 1000
    sample = Sampler(model, 4, 3, seed=2).traces()
    assert all((t.nodes.duration_ns % 1000 == 0).all() for t in sample.values())


def test_edges_from_another_lane_come_from_what_they_came_from() -> None:
    """The kernel waits for the launch, whether an operation lies between or not."""
    for t in Sampler(learned().model, 8, 2, seed=4).traces().values():
        by_id = {n.id: n for n in t.nodes}
        kernels = [n for n in t.nodes if n.stream is not None]
        assert kernels
        for kernel in kernels:
            launches = [s for s, kind, _ in kernel.edges if kind == EdgeKind.LAUNCH]
            assert [by_id[s].name for s in launches] == ["launch"]


def launches(late: int) -> Trace:
    """Two launches and their kernels, the second of which waits for an event of the first.

    The device comes to the kernels so much later than the host launched them.
    """
    on = {"is_cpu_op": True, "thread": 1}
    device = {"is_cpu_op": False, "stream": 7}
    nodes = [
        node(1, name="cudaLaunchKernel", start=0, took=10, **on),
        node(2, name="cudaLaunchKernel", start=10, took=10, deps=(1,), kind=EdgeKind.PROGRAM, **on),
        node(3, name="aten::view", start=20, took=10, deps=(2,), kind=EdgeKind.PROGRAM, **on),
        node(4, name="mm", start=10 + late, took=3, deps=(1,), kind=EdgeKind.LAUNCH, **device),
        node(5, name="relu", start=20 + late, took=3, deps=(2,), kind=EdgeKind.LAUNCH, **device),
    ]
    return trace(*sorted(nodes, key=lambda n: (n["start"], n["id"])), rank=0)


def test_work_of_a_device_stands_behind_its_launch_whenever_it_ran() -> None:
    for late in (0, 5, 100):
        given_trace = launches(late)
        order = view_of(given_trace, 0).order
        assert [int(given_trace.nodes.id[row]) for row in order] == [1, 4, 2, 5, 3]


@given(st.integers(1, 2000), st.integers(0, 5))
def test_lengths_close_to_each_other_are_one_band(length: int, more: int) -> None:
    bands, counts = _bands([(length, 1), (length + more, 2), (4 * length + 9, 3)])
    together = more <= length * 0.05
    assert bands == (
        [(length, length + more), (4 * length + 9,) * 2] if together
        else [(length,) * 2, (length + more,) * 2, (4 * length + 9,) * 2]
    )  # fmt: skip
    assert counts == ([3, 3] if together else [1, 2, 3])


def test_an_occurrence_that_was_seen_once_is_not_told_apart() -> None:
    part = fit([TraceSet({0: recorded(0)})]).model.parts[0]
    assert (part.occurrences, part.apart) == ((), ())


@given(st.lists(st.integers(0, 1 << 30), min_size=1, max_size=40), st.integers(2, 5))
def test_groups_that_are_all_alike_are_one_class(values: list[int], groups: int) -> None:
    column = np.log1p(np.tile(np.array(values, np.float64), groups))
    group = np.repeat(np.arange(groups), len(values))
    assert partition(column, group).max() == 0


def test_groups_are_told_apart_only_where_their_means_are() -> None:
    random = np.random.default_rng(1)
    group = np.repeat(np.arange(30), 8)
    noise = random.normal(9, 0.3, len(group))
    assert partition(noise, group).max() == 0
    apart = np.arange(30) % 3 == 1
    assert partition(noise + 3 * apart[group], group).tolist() == apart.tolist()


def test_means_of_all_durations_are_kept() -> None:
    model = learned().model
    given_sum = sum(int(recorded(rank).nodes.duration_ns.sum()) for rank in range(4))
    drawn = [
        int(t.nodes.duration_ns.sum())
        for seed in range(10)
        for t in Sampler(model, 4, seed=seed).traces().values()
    ]
    assert abs(np.mean(drawn) / (given_sum / 4) - 1) < 0.01
