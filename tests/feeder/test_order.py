"""Every implementation hands out the same order: the order of a ten-line reference."""

from __future__ import annotations

import gzip
import os
import random
from pathlib import Path
from typing import Any

import pytest
from feeder_traces import N, random_nodes, reference_order, reference_window, trace
from native import NativeFeeder

from chakra_et.converters.et import decode_et
from chakra_et.feeder import Code, Feeder, FeederError, Next, State

ROUNDS = int(os.environ.get("CHAKRA_ET_ROUNDS", "2000"))


def drained(feeder: Any) -> list[int]:
    """Take and finish node after node by the calls of the protocol."""
    order = []
    while True:
        answer, node = feeder.next()
        if answer is not Next.NODE:
            return order
        order.append(node.id)
        feeder.done(node.id)


def iterated(feeder: Feeder) -> list[int]:
    """The order of a for loop."""
    order = []
    try:
        for node in feeder:
            order.append(node.id)
    except FeederError as error:
        if error.code is not Code.BLOCKED:
            raise
    return order


@pytest.mark.parametrize("cyclic", [False, True])
def test_random_graphs(native: Any, cyclic: bool) -> None:
    rng = random.Random(f"order {cyclic}")
    for _ in range(ROUNDS):
        nodes = random_nodes(rng, rng.randrange(14), rng.choice([1, 1, 2, 30]), cyclic=cyclic)
        data, wanted = trace(nodes), reference_order(nodes)
        feeder = Feeder(data)
        assert iterated(feeder) == wanted
        feeder.reset()
        assert drained(feeder) == wanted
        assert drained(NativeFeeder(native, data)) == wanted
        assert drained(Feeder(decode_et(data))) == wanted


@pytest.mark.parametrize("cyclic", [False, True])
def test_random_windows(native: Any, cyclic: bool) -> None:
    rng = random.Random(f"windows {cyclic}")
    for _ in range(ROUNDS):
        nodes = random_nodes(rng, rng.randrange(20), rng.choice([1, 2, 30]), cyclic=cyclic)
        window = rng.randrange(1, 8)
        data, wanted = trace(nodes), reference_window(nodes, window)
        feeder = Feeder(data, window=window)
        assert iterated(feeder) == wanted
        feeder.reset()
        assert drained(feeder) == wanted
        assert drained(NativeFeeder(native, data, window=window)) == wanted


def skipping_reference(nodes: list[N]) -> list[int]:
    """The order without metadata nodes, which are done as soon as they could be taken."""
    parents = {node.id: node.parents for node in nodes}
    hidden = {node.id for node in nodes if node.type == 1}
    done: list[int] = []
    while True:
        ready = [i for i in parents if i not in done and all(p in done for p in parents[i])]
        if not ready:
            return [i for i in done if i not in hidden]
        done.append(min(ready, key=lambda i: (i not in hidden, i)))


def test_options_agree(native: Any) -> None:
    rng = random.Random("options")
    for _ in range(ROUNDS):
        nodes = random_nodes(rng, rng.randrange(14), rng.choice([1, 2, 30]))
        data = trace(nodes)
        assert iterated(Feeder(data, skip_metadata=True)) == skipping_reference(nodes)
        options: dict[str, Any] = {
            "skip_metadata": rng.random() < 0.5,
            "order": rng.choice(["id", "start"]),
            "window": rng.choice([0, 0, 1, 3]),
            "repeat": rng.choice([1, 2]),
        }
        feeder = Feeder(data, **options)
        order = drained(feeder)
        feeder.reset()
        assert iterated(feeder) == order
        assert drained(NativeFeeder(native, data, **options)) == order


def outcome(make: Any) -> Any:
    """The order, or what was wrong."""
    try:
        return drained(make())
    except FeederError as error:
        return error.code


def test_faulty_edges_agree(native: Any) -> None:
    rng = random.Random("faults")
    for _ in range(ROUNDS):
        nodes = random_nodes(rng, rng.randrange(1, 10), 2, cyclic=True)
        for node in nodes:
            if rng.random() < 0.15:
                node.data = [*node.data, node.id if rng.random() < 0.5 else 777_777]
        data = trace(nodes)
        options: dict[str, Any] = {
            "missing_parent": rng.choice(["fail", "drop", "wait"]),
            "self_edge": rng.choice(["fail", "drop", "wait"]),
            "window": rng.choice([0, 0, 2, 30]),
            "skip_metadata": rng.random() < 0.3,
        }
        assert outcome(lambda: Feeder(data, **options)) == outcome(  # noqa: B023
            lambda: NativeFeeder(native, data, **options)  # noqa: B023
        )


def test_random_calls_agree(native: Any) -> None:
    """Any sequence of calls leads to the same states and the same answers."""
    rng = random.Random("calls")
    for _ in range(ROUNDS // 4):
        nodes = random_nodes(rng, rng.randrange(1, 12), 2)
        data, window = trace(nodes), rng.choice([0, 0, 2, 5])
        options: dict[str, Any] = {"window": window, "order": rng.choice(["id", "start"])}
        feeders: list[Any] = [Feeder(data, **options), NativeFeeder(native, data, **options)]
        ids = [node.id for node in nodes] + [999_999]
        for _ in range(40):
            call, node_id = rng.choice(["take", "done", "push_back", "next"]), rng.choice(ids)
            answers = []
            for feeder in feeders:
                try:
                    if call == "next":
                        answer, node = feeder.next()
                        answers.append((answer, node and node.id))
                    else:
                        getattr(feeder, call)(node_id)
                        answers.append((None, None))
                except FeederError as error:
                    answers.append((error.code, error.node))
            assert answers[0] == answers[1]
            assert feeders[0].ready() == feeders[1].ready()
            assert feeders[0].counts() == feeders[1].counts()
            assert [feeders[0].state(i) for i in ids] == [feeders[1].state(i) for i in ids]
        assert str(feeders[0].blocked()) == feeders[1].blocked()


def test_real_traces(native: Any, data: Path) -> None:
    paths = [*sorted((data / "et").rglob("*.et")), data / "et" / "broken_graph.0.et.gz"]
    assert len(paths) > 20
    for path in paths:
        choices: dict[str, Any] = {"missing_parent": "drop", "self_edge": "drop"}
        if "broken" in path.name:
            choices["gate"] = ["data"]  # its call edges have cycles
        feeder = Feeder(path, **choices)
        raw = path.read_bytes()
        if path.suffix == ".gz":
            raw = gzip.decompress(raw)
        if "gate" in choices:
            native_feeder = NativeFeeder(native, raw, **{**choices, "gate": feeder.options.gate})
        else:
            native_feeder = NativeFeeder(native, raw, **choices)
        order = drained(native_feeder)
        assert iterated(feeder) == order
        assert len(order) == feeder.counts().done
        assert feeder.is_finished
        trace_order = iterated(Feeder(decode_et(raw), **choices))
        assert trace_order == order
        nodes = {node_id: feeder.node(node_id) for node_id in order}
        for node_id, node in nodes.items():
            twin = native_feeder.node(node_id)
            assert twin is not None
            assert (twin.type, twin.duration_ns) == (node.type, node.duration_ns)
            assert twin.text().decode() == node.name
            assert bool(twin.is_cpu_op) == bool(node.is_cpu_op)
            assert feeder.state(node_id) is State.DONE
