"""A run in order is done without bookkeeping: nobody can tell, whatever is asked in between."""

from __future__ import annotations

import random
from typing import Any

import pytest
from feeder_traces import N, attribute, bytes_field, number_field, random_nodes, trace

from chakra_et.converters.et.wire import varint
from chakra_et.feeder import Code, Feeder, FeederError, Next, State

CHAIN = [N(0), *(N(i, [i - 1]) for i in range(1, 3000))]
"""More nodes than are made at once."""


def test_one_by_one() -> None:
    feeder = Feeder(trace(CHAIN))
    for node_id in range(3000):
        answer, node = feeder.next()
        assert (answer, node.id) == (Next.NODE, node_id)
        assert not feeder.is_finished
        feeder.done(node_id)
    assert feeder.is_finished
    assert feeder.next() == (Next.FINISHED, None)
    assert feeder.counts().done == 3000
    assert feeder.state(2999) is State.DONE


@pytest.mark.parametrize("stop", [0, 1, 1023, 1024, 1025, 2999])
@pytest.mark.parametrize("way", ["next", "run"])
def test_questions_in_between(stop: int, way: str) -> None:
    feeder = Feeder(trace(CHAIN))
    run = iter(feeder)
    for node_id in range(stop + 1):
        if way == "run":
            assert next(run).id == node_id
        else:
            assert feeder.next()[1].id == node_id
            if node_id < stop:
                feeder.done(node_id)
    counts = feeder.counts()
    assert (counts.done, counts.taken, counts.ready) == (stop, 1, 0)
    assert feeder.ids_in(State.TAKEN) == [stop]
    assert feeder.next() == (Next.PENDING, None)
    feeder.push_back(stop)
    assert feeder.ready() == [stop]
    assert [node.id for node in feeder] == list(range(stop, 3000))


def test_calls_inside_a_loop() -> None:
    feeder = Feeder(trace([N(0), N(1), N(2, [1]), N(3, [0])]))
    order = []
    for node in feeder:
        order.append(node.id)
        if node.id == 0:
            feeder.done(0)  # before its time
            assert feeder.take(3).id == 3
            feeder.done(3)
    assert order == [0, 1, 2]
    assert feeder.is_finished


def test_reset_inside_a_loop() -> None:
    for nodes in ([N(0), N(1, [0]), N(2, [1])], [N(0, [2]), N(1, [0]), N(2)]):
        for window in (0, 3):
            feeder = Feeder(trace(nodes), window=window)
            order = []
            for node in feeder:
                order.append(node.id)
                if len(order) == 2:
                    feeder.reset()
            assert order == order[:2] + [node.id for node in Feeder(trace(nodes))]


def test_two_loops_share_the_nodes() -> None:
    feeder = Feeder(trace([N(0), N(1), N(2), N(3)]))
    one, other = iter(feeder), iter(feeder)
    assert [next(one).id, next(other).id, next(one).id, next(other).id] == [0, 1, 2, 3]
    with pytest.raises(FeederError, match="taken, not done: 3"):
        list(one)  # the other loop has it
    assert list(other) == []
    assert feeder.is_finished


def test_start_order_with_metadata() -> None:
    """Also by start times, and with nodes left out, a run in order is one."""
    nodes = [N(3, start=1), N(2, [3], start=2, type=1), N(1, [2], start=3), N(0, [1], start=4)]
    feeder = Feeder(trace(nodes), order="start", skip_metadata=True)
    assert feeder.next()[1].id == 3
    assert feeder.counts().done == 0
    feeder.done(3)
    assert feeder.counts().done == 2
    assert [node.id for node in feeder] == [1, 0]


def calls(rng: random.Random, feeder: Feeder, ids: list[int]) -> list[Any]:
    """What a random sequence of calls answers; mostly the last node is finished, as in a run."""
    answers: list[Any] = []
    last = ids[0]
    for _ in range(30):
        call = rng.choice(["next"] * 6 + ["done"] * 6 + ["loop"] * 2 + ["push_back", "counts"])
        try:
            if call == "next":
                answer, node = feeder.next()
                last = last if node is None else node.id
                answers.append((answer, last))
            elif call == "loop":
                nodes = iter(feeder)
                for _ in range(rng.randrange(1, 4)):
                    last = next(nodes).id
                    answers.append(last)
            elif call == "counts":
                answers.append(feeder.counts())
            else:
                getattr(feeder, call)(last if rng.random() < 0.9 else rng.choice(ids))
                answers.append(call)
        except StopIteration:
            answers.append("end")
        except FeederError as error:
            answers.append(error.code)
    return answers


def test_bookkeeping_makes_no_difference() -> None:
    rng = random.Random("straight")
    for _ in range(400):
        nodes = random_nodes(rng, rng.randrange(1, 10), 1)
        order = {node.id: place for place, node in enumerate(sorted(nodes, key=lambda n: n.id))}
        for node in nodes:  # in order
            node.data = [p for p in node.data if order[p] < order[node.id]]
            node.ctrl = [p for p in node.ctrl if order[p] < order[node.id]]
        ids, seed = [node.id for node in nodes], rng.random()
        options: dict[str, Any] = {
            "skip_metadata": rng.random() < 0.3, "order": rng.choice(["id", "start"]),
        }  # fmt: skip
        straight, settled = Feeder(trace(nodes), **options), Feeder(trace(nodes), **options)
        settled.ready()  # keeps books from the first node on
        assert calls(random.Random(seed), straight, ids) == calls(random.Random(seed), settled, ids)


ODD = {
    "kind": attribute("is_cpu_op", 7, 1),
    "value before name": bytes_field(10, number_field(27, 1) + bytes_field(1, b"is_cpu_op")),
    "twice": attribute("is_cpu_op", 27, 0) + attribute("is_cpu_op", 27, 1),
    "documented": bytes_field(
        10, bytes_field(1, b"is_cpu_op") + bytes_field(2, b"d") + number_field(27, 1)
    ),
    "text": attribute("is_cpu_op", 29, "1") + attribute("is_cpu_op", 27, 1),
    "longer number": bytes_field(10, bytes_field(1, b"is_cpu_op") + b"\xd8\x01\x81\x00"),
    "exact": attribute("duration_ns", 9, 4_600) + attribute("start_time_ns", 9, 7_499),
    "exact twice": attribute("duration_ns", 9, 9) + attribute("duration_ns", 9, 4_600),
    "not near": attribute("duration_ns", 9, 5_501) + attribute("start_time_ns", 9, 6_499),
    "other kind": attribute("duration_ns", 15, 4_600) + attribute("start_time_ns", 13, 7_001),
    "other name": attribute("duration_us", 9, 5_001) + attribute("start_time_us", 9, 7_001),
    "negative": attribute("duration_ns", 9, (1 << 64) - 1),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("micros", [5, 0, 1 << 60, (1 << 63) // 1000])
def test_columns_say_what_the_bytes_say(name: str, micros: int) -> None:
    start = 7 if micros == 5 else micros
    nodes = [N(i, duration=micros, start=start, attrs=ODD[name] * (i % 2)) for i in range(4)]
    data = trace(nodes)
    fields = ("id", "type", "duration_ns", "start_ns", "is_cpu_op", "name", "attributes")
    for order in ("id", "start"):
        from_columns = list(Feeder(data, order=order))
        from_bytes = list(Feeder(data, window=9, order=order))
        for field in fields:
            wanted = [getattr(node, field) for node in from_bytes]
            assert [getattr(node, field) for node in from_columns] == wanted
        assert from_columns == from_bytes


def test_a_broken_attribute_names_the_node() -> None:
    broken = bytes_field(10, bytes_field(1, b"comm_size") + b"\x48" + varint(1 << 63)[:-1])
    data = trace([N(0), N(5, attrs=broken)])
    for window in (0, 3):
        node = list(Feeder(data, window=window))[1]
        with pytest.raises(FeederError, match="an attribute that is not a mess") as caught:
            _ = node.comm_size
        assert (caught.value.code, caught.value.node) == (Code.MALFORMED, 5)
