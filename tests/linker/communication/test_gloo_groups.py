"""Groups and peers of transfers over gloo: no file names them; threads, calls and ranks tell."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from gloo import FLOAT, GlooRun
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import write_json

from chakra_et import validate
from chakra_et.conversion import Conversion, convert, trace_set
from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.directory import convert_directory
from chakra_et.linker.communication.candidates import in_order_of_threads

EVERYONE = (0, 1, 2, 3)
PAIRS = ((0, 1), (2, 3), (0, 2), (1, 3))


def converted(run: GlooRun, folder: Path) -> dict[int, Conversion]:
    found = convert_directory(run.write(folder / "in"), None)
    return {conversion.report.rank or 0: conversion for conversion in found}


def groups(conversion: Conversion) -> list[tuple[str, int | None, str | None, str | None]]:
    """Name, size, group and candidates of each collective, in order."""
    return [
        (node.name, node.comm_size, node.pg_name, node.attributes.get("pg_candidates"))
        for node in conversion.trace.nodes
        if node.type == NodeType.COMM_COLL
    ]


def messages(conversion: Conversion) -> list[tuple[str, int | None, int | None, int | None]]:
    """Name, size, tag and the other side of each message, in order."""
    sides = {NodeType.COMM_SEND: "comm_dst", NodeType.COMM_RECV: "comm_src"}
    return [
        (node.name, node.comm_size, node.comm_tag, node.attributes.get(sides[node.type]))
        for node in conversion.trace.nodes
        if node.type in sides
    ]


def test_the_other_members_of_a_group_tell_it(tmp_path: Path) -> None:
    run = GlooRun(4, PAIRS)
    for ranks, floats in (((0, 1), 110), ((2, 3), 150), ((0, 2), 130)):
        run.collective("all_reduce", ranks, floats)
    run.collective("all_gather", EVERYONE, 90)
    found = converted(run, tmp_path)
    assert [(size, group) for _, size, group, _ in groups(found[0])] == [
        (440, "1"),
        (520, "3"),
        (360, "0"),
    ]
    assert [(size, group) for _, size, group, _ in groups(found[3])] == [(600, "2"), (360, "0")]
    assert not validate(trace_set(list(found.values()))).exit_code()


def test_a_rank_alone_says_which_groups_it_may_be(tmp_path: Path) -> None:
    run = GlooRun(4, PAIRS).collective("all_reduce", (0, 1), 110)
    folder = run.write(tmp_path / "in")
    result = convert(folder / "host.0.json", folder / "device.0.json")
    assert groups(result) == [("gloo:all_reduce", 440, None, '["0","1","3"]')]
    (warning,) = (w for w in result.report.warnings if "process groups" in w)
    assert warning.startswith("1 collective is of one of the process groups 0, 1, 3;")
    assert validate(result.trace).rules == {"ET409"}


@pytest.mark.parametrize(
    ("name", "tells"),
    [("all_gather", True), ("scatter", True), ("gather", True), ("all_reduce", False)],
)
def test_calls_that_list_a_tensor_for_each_rank_tell_how_many_there_are(
    tmp_path: Path, name: str, tells: bool
) -> None:
    folder = GlooRun(4, ((0, 1),)).collective(name, EVERYONE, 8).write(tmp_path / "in")
    ((_, _, group, _),) = groups(convert(folder / "host.0.json", folder / "device.0.json"))
    assert group == ("0" if tells else None)


def test_a_root_that_a_group_has_not_rules_it_out(tmp_path: Path) -> None:
    folder = GlooRun(4, ((0, 1),)).collective("broadcast", EVERYONE, 8, root=3).write(tmp_path)
    ((_, _, group, _),) = groups(convert(folder / "host.0.json", folder / "device.0.json"))
    assert group == "0"


def test_a_thread_serves_one_group(tmp_path: Path) -> None:
    """What its all-gather tells is true of all that the thread does, not of the other thread."""
    run = GlooRun(4, ((0, 1),))
    for name in ("all_gather", "all_reduce", "all_reduce"):
        run.collective(name, EVERYONE, 8)
    folder = run.write(tmp_path / "in")
    found = groups(convert(folder / "host.0.json", folder / "device.0.json"))
    assert [group for _, _, group, _ in found] == ["0", None, "0"]


def test_threads_are_made_in_the_order_of_groups() -> None:
    names = ("0", "1", "3")
    assert in_order_of_threads({10: ("0", "1"), 20: names, 30: ("1",)}, names) == {
        10: ("0",),
        20: ("0", "1"),
        30: ("1",),
    }
    # Four threads for two groups, two for each.
    assert in_order_of_threads(dict.fromkeys((1, 2, 3, 4), ("0", "1")), ("0", "1")) == {
        1: ("0",),
        2: ("0",),
        3: ("1",),
        4: ("1",),
    }
    # What cannot be rules out nothing.
    assert in_order_of_threads({1: ("1",), 2: ("0",)}, names) == {1: ("1",), 2: ("0",)}


def test_a_call_of_functional_collectives_names_the_group(tmp_path: Path) -> None:
    folder = GlooRun(4, PAIRS).collective("all_reduce", (0, 2), 8, named=True).write(tmp_path)
    ((_, _, group, _),) = groups(convert(folder / "host.0.json", folder / "device.0.json"))
    assert group == "3"


BOTH, SAVING = (0, 1), 4


def trained_and_saved(*, named: bool, waits: bool) -> GlooRun:
    """Training, and a thread of its own that saves in another group of the same members.

    Rank 0 calls the first two that save after the second all-reduce. Rank 1 calls them before it,
    unless it `waits`. The last two come after the third on both.
    """
    run = GlooRun(2, (BOTH,))

    def train(floats: int, on: tuple[int, ...] = BOTH) -> None:
        run.collective("all_reduce", BOTH, floats, on=on, named=named)

    def save(names: tuple[str, ...], on: tuple[int, ...] = BOTH) -> None:
        for name in names:
            run.collective(name, BOTH, 5, group="1", on=on, host_thread=SAVING)

    train(30)
    train(31, on=(0,))
    save(("all_gather", "gather"), on=(0,))
    if waits:
        train(31, on=(1,))
    save(("all_gather", "gather"), on=(1,))
    if not waits:
        train(31, on=(1,))
    train(32)
    save(("scatter", "broadcast"))
    return run


def told(conversion: Conversion) -> list[tuple[str, str | None, str]]:
    """Name and group of each collective, and the last of what its facts come from, in order."""
    return sorted(
        (node.name.removeprefix("gloo:"), node.pg_name, str(node.comm_facts).split(", ")[-1])
        for node in conversion.trace.nodes
        if node.type == NodeType.COMM_COLL
    )


def test_a_thread_out_of_step_with_a_group_calls_another_of_the_same_members(
    tmp_path: Path,
) -> None:
    found = converted(trained_and_saved(named=True, waits=False), tmp_path)
    for conversion in found.values():
        assert told(conversion) == [
            ("all_gather", "1", "order of calls on other ranks"),
            *[("all_reduce", "0", "name in the call")] * 3,
            ("broadcast", "1", "thread that asked"),
            ("gather", "1", "order of calls on other ranks"),
            ("scatter", "1", "thread that asked"),
        ]
    assert not validate(trace_set(list(found.values()))).rules


def test_of_two_groups_that_nothing_names_the_first_is_that_of_who_called_first(
    tmp_path: Path,
) -> None:
    for conversion in converted(trained_and_saved(named=False, waits=False), tmp_path).values():
        assert {fact for *_, fact in told(conversion)} == {"order of first calls"}
        assert {name for name, group, _ in told(conversion) if group == "0"} == {"all_reduce"}
        assert {group for name, group, _ in told(conversion) if name != "all_reduce"} == {"1"}


@pytest.mark.parametrize("named", [False, True])
def test_a_thread_in_step_may_call_the_group_of_another(tmp_path: Path, named: bool) -> None:
    found = converted(trained_and_saved(named=named, waits=True), tmp_path)
    for conversion in found.values():
        groups_of = {name: group for name, group, _ in told(conversion)}
        assert groups_of.pop("all_reduce") == ("0" if named else None)
        assert set(groups_of.values()) == {None}


@settings(max_examples=10)
@given(
    saves=st.lists(st.sampled_from(("all_gather", "gather", "broadcast")), min_size=1, max_size=4),
    after=st.tuples(*[st.lists(st.integers(0, 3), min_size=4, max_size=4).map(sorted)] * 2),
    group=st.sampled_from(("0", "1")),
)
def test_order_tells_the_truth_or_nothing(
    saves: list[str], after: tuple[list[int], list[int]], group: str
) -> None:
    """A thread of each rank saves after so many all-reduces: in step if it uses their group."""
    run = GlooRun(2, (BOTH,))
    for rank in BOTH:
        left = list(zip(saves, after[0 if group == "0" else rank], strict=False))
        for trained in range(4):
            for name, _ in (save for save in left if save[1] == trained):
                run.collective(name, BOTH, 5, group=group, on=(rank,), host_thread=SAVING)
            run.collective("all_reduce", BOTH, 30, on=(rank,), named=True)
    with TemporaryDirectory() as folder:
        for conversion in converted(run, Path(folder)).values():
            for name, found, _ in told(conversion):
                assert found == "0" if name == "all_reduce" else found in (None, group)
            if group == "1" and after[0][: len(saves)] != after[1][: len(saves)]:
                assert "1" in {found for _, found, _ in told(conversion)}


@pytest.mark.parametrize("root", [0, 2])
def test_a_scatter_has_the_buffer_as_size_on_ranks_that_are_not_its_root(
    tmp_path: Path, root: int
) -> None:
    found = converted(GlooRun(4).collective("scatter", EVERYONE, 33, root=root), tmp_path)
    sizes = {rank: groups(conversion)[0][1] for rank, conversion in found.items()}
    assert sizes == {rank: 33 * FLOAT * (4 if rank == root else 1) for rank in EVERYONE}


def test_messages_find_their_other_side_in_groups_of_one_size(tmp_path: Path) -> None:
    run = GlooRun(4, PAIRS)
    run.message(2, 3, (2, 3), 111, 1).message(2, 0, (0, 2), 112, 2).message(1, 3, (1, 3), 113, 3)
    for rank in EVERYONE:
        run.message(rank, (rank + 1) % 4, EVERYONE, 120 + rank, rank)
    found = converted(run, tmp_path)
    assert messages(found[2]) == [
        ("gloo:send", 444, 1, 3),
        ("gloo:send", 448, 2, 0),
        ("gloo:recv", 484, 1, 1),
        ("gloo:send", 488, 2, 3),
    ]
    assert not validate(trace_set(list(found.values()))).exit_code()


@pytest.mark.parametrize(
    ("rings", "pairs", "told"), [(1, 0, ["0"]), (0, 1, ["1"]), (1, 1, [None, None])]
)
def test_a_message_that_may_be_of_two_groups_is_of_one_like_those_of_others(
    tmp_path: Path, rings: int, pairs: int, told: list[str | None]
) -> None:
    """Rank 1 has the second place among all and in its pair; the others' messages have one group.

    Nothing is told where alike messages are of groups of both sizes.
    """
    run = GlooRun(4, PAIRS[:2])
    for rank in EVERYONE * rings:
        run.message(rank, (rank + 1) % 4, EVERYONE, 100, 0)
    for first, second in PAIRS[:2] * pairs:
        run.message(first, second, (first, second), 100, 0)
    found = converted(run, tmp_path)
    assert [node.pg_name for node in found[0].trace.nodes.where(name="gloo:send")] == told
    assert [side for *_, side in messages(found[0])][:1] == [1]
    if told[0]:
        (node, *_) = found[0].trace.nodes.where(name="gloo:send")
        assert str(node.comm_facts).endswith("groups of alike messages")


def test_a_message_from_any_rank_is_from_who_sent_one(tmp_path: Path) -> None:
    run = GlooRun(4, PAIRS)
    run.message(1, 0, (0, 1), 50, 7, any_source=True)
    run.message(3, 0, EVERYONE, 60, 7, any_source=True)
    run.message(2, 0, EVERYONE, 60, 7)
    found = converted(run, tmp_path)
    assert [side for *_, side in messages(found[0])] == [1, 3, 2]
    assert not any("any rank" in w for w in found[0].report.warnings)


def test_of_several_senders_the_one_whose_send_ended_first_is_taken_and_told(
    tmp_path: Path,
) -> None:
    run = GlooRun(3)
    for source in (2, 1):
        run.message(source, 0, (0, 1, 2), 50, 7, any_source=True)
    found = converted(run, tmp_path)
    assert [side for *_, side in messages(found[0])] == [2, 1]
    (warning,) = (w for w in found[0].report.warnings if "any rank" in w)
    assert warning.startswith("1 message received from any rank could be of several senders")


def test_a_barrier_that_may_be_of_all_ranks_is(tmp_path: Path) -> None:
    found = converted(GlooRun(4, PAIRS).collective("barrier", EVERYONE), tmp_path)
    for conversion in found.values():
        assert groups(conversion) == [("gloo:barrier", 0, "0", None)]
        (node,) = conversion.trace.nodes.where(name="gloo:barrier")
        assert str(node.comm_facts).endswith("usual group of a barrier")


def test_groups_of_all_ranks_need_no_name(tmp_path: Path) -> None:
    """Whichever of them it is, all ranks take part."""
    found = converted(GlooRun(2, ((0, 1),)).collective("all_reduce", (0, 1), 8), tmp_path)
    assert groups(found[0]) == [("gloo:all_reduce", 32, None, None)]
    assert not validate(trace_set(list(found.values()))).rules


def late_halves(calls: int, late_us: float) -> GlooRun:
    """All-reduces of all ranks, in which two ranks begin late and the others wait for them."""
    run = GlooRun(4, PAIRS[:2])
    for _ in range(calls):
        run.collective("all_reduce", EVERYONE, 8, late_us={2: late_us, 3: late_us}, together=True)
    return run


def test_ranks_that_waited_for_others_were_in_one_group_with_them(tmp_path: Path) -> None:
    found = converted(late_halves(1, 2000), tmp_path)
    assert {rank: groups(c)[0][2] for rank, c in found.items()} == dict.fromkeys(EVERYONE, "0")


def test_a_wait_too_short_to_tell_leaves_the_group_open(tmp_path: Path) -> None:
    found = converted(late_halves(1, 100), tmp_path)
    assert {groups(c)[0][2] for c in found.values()} == {None}


def test_ranks_that_ended_before_others_began_were_not_in_one_group(tmp_path: Path) -> None:
    run = GlooRun(4, PAIRS[:2])
    for ranks in ((0, 1), (2, 3)):
        run.collective("all_reduce", ranks, 8)
    found = converted(run, tmp_path)
    assert [groups(found[rank])[0][2] for rank in EVERYONE] == ["1", "1", "2", "2"]


def test_times_of_different_machines_tell_nothing(tmp_path: Path) -> None:
    run = late_halves(1, 2000)
    folder = run.write(tmp_path / "in")
    for rank in EVERYONE:
        profile = json.loads((folder / f"device.{rank}.json").read_bytes())
        write_json(folder / f"device.{rank}.json", profile | {"host_name": f"machine {rank}"})
    found = convert_directory(folder, None)
    assert {groups(conversion)[0][2] for conversion in found} == {None}


CALLS = st.lists(
    st.tuples(
        st.sampled_from(("all_reduce", "all_gather", "broadcast", "all_to_all", "gather")),
        st.sampled_from((EVERYONE, *PAIRS)),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=20)
@given(calls=CALLS)
def test_what_is_told_is_true(calls: list[tuple[str, tuple[int, ...], int]]) -> None:
    """Whatever the calls: a group is right or open, and the right one is never ruled out."""
    run = GlooRun(4, PAIRS)
    for name, ranks, floats in calls:
        run.collective(name, ranks, floats)
    names = {ranks: name for name, ranks in run.members().items()}
    with TemporaryDirectory() as folder:
        found = converted(run, Path(folder))
        for rank, conversion in found.items():
            told = groups(conversion)
            true = [(f"gloo:{name}", names[r]) for name, r, _ in calls if rank in r]
            assert [name for name, *_ in told] == [name for name, _ in true]
            for (_, _, group, options), (_, right) in zip(told, true, strict=True):
                assert group == right or right in json.loads(options or "[]")


@settings(max_examples=20)
@given(calls=CALLS)
def test_groups_of_calls_that_differ_in_size_are_all_told(
    calls: list[tuple[str, tuple[int, ...], int]],
) -> None:
    """Those of all ranks are not: two halves could make the same calls."""
    run = GlooRun(4, PAIRS)
    sized = [(name, r, 10 + at) for at, (name, r, _) in enumerate(calls) if r != EVERYONE]
    for name, ranks, floats in sized:
        run.collective(name, ranks, floats)
    names = {ranks: name for name, ranks in run.members().items()}
    with TemporaryDirectory() as folder:
        for rank, conversion in converted(run, Path(folder)).items():
            told = [group for _, _, group, _ in groups(conversion)]
            assert told == [names[ranks] for _, ranks, _ in sized if rank in ranks]


def test_types_are_those_of_the_ranges(tmp_path: Path) -> None:
    found = converted(GlooRun(2).collective("all_to_all", (0, 1), 8), tmp_path)
    (node,) = found[0].trace.nodes.where(name="gloo:all_to_all")
    assert (node.comm_type, node.comm_size) == (CollectiveType.ALL_TO_ALL, 64)
