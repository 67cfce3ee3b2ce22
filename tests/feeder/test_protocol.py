"""The calls of the protocol, one by one."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pytest
import zstandard
from feeder_traces import N, attribute, trace

from chakra_et.definitions import NodeType
from chakra_et.feeder import Code, Feeder, FeederError, FeederSet, Next, State
from chakra_et.model import EdgeKind

DIAMOND = [N(0), N(1, [0]), N(2, ctrl=[0]), N(3, [1, 2], type=7, duration=5)]


@pytest.fixture(params=[0, 2, 100], ids=lambda window: f"window={window}")
def diamond(request: Any) -> Feeder:
    return Feeder(trace(DIAMOND), window=request.param)


def test_states(diamond: Feeder) -> None:
    assert diamond.ready() == [0]
    assert diamond.take(0).id == 0
    assert diamond.state(0) is State.TAKEN
    assert diamond.ready() == []
    assert diamond.next() == (Next.PENDING, None)
    diamond.done(0)
    assert diamond.state(0) is State.DONE
    assert diamond.ready() == [1, 2]
    assert diamond.take(2).id == 2
    diamond.push_back(2)
    assert diamond.ready() == [1, 2]
    assert [node.id for node in diamond.take_many(5)] == [1, 2]
    diamond.done(2)
    diamond.done(1)
    answer, node = diamond.next()
    assert (answer, node.type, node.duration_ns) == (Next.NODE, NodeType.COMM_COLL, 5000)
    assert not diamond.is_finished
    diamond.done(3)
    assert diamond.is_finished
    assert diamond.next() == (Next.FINISHED, None)


@pytest.mark.parametrize(
    ("call", "node_id", "code"),
    [
        ("take", 3, Code.NOT_READY), ("done", 0, Code.NOT_TAKEN), ("push_back", 1, Code.NOT_TAKEN),
        ("take", 99, Code.UNKNOWN_NODE), ("done", 99, Code.UNKNOWN_NODE),
    ],
)  # fmt: skip
def test_refusals_name_the_node(call: str, node_id: int, code: Code) -> None:
    feeder = Feeder(trace(DIAMOND))
    with pytest.raises(FeederError) as caught:
        getattr(feeder, call)(node_id)
    assert (caught.value.code, caught.value.node) == (code, node_id)
    assert feeder.ready() == [0]


def test_looking_while_iterating() -> None:
    feeder = Feeder(trace(DIAMOND))
    seen = []
    for node in feeder:
        seen.append(node.id)
        if node.id == 1:
            assert feeder.state(0) is State.DONE
            assert feeder.state(1) is State.TAKEN
            assert feeder.ready() == [2]
    assert seen == [0, 1, 2, 3]
    assert feeder.counts().done == 4


def test_leaving_a_loop_keeps_the_node_taken() -> None:
    feeder = Feeder(trace(DIAMOND))
    for node in feeder:
        if node.id == 1:
            break
    assert feeder.ids_in(State.TAKEN) == [1]
    feeder.done(1)
    assert [node.id for node in feeder] == [2, 3]


def test_parents_and_children(diamond: Feeder) -> None:
    window = diamond.options.window
    assert diamond.children(0) == ([1] if window == 2 else [1, 2])
    if window != 2:
        assert diamond.parents(3) == [(1, EdgeKind.DATA, False), (2, EdgeKind.DATA, False)]
        assert diamond.parents(2) == [(0, EdgeKind.CALL, False)]


def test_rewind_reset_and_repeat(diamond: Feeder) -> None:
    diamond.take(0)
    with pytest.raises(FeederError) as caught:
        diamond.rewind()
    assert caught.value.code is Code.IN_FLIGHT
    diamond.reset()
    order = [node.id for node in diamond]
    diamond.rewind()
    assert [node.id for node in diamond] == order
    twice = Feeder(trace(DIAMOND), repeat=2, window=diamond.options.window)
    assert [node.id for node in twice] == order * 2
    assert twice.round == 1


def test_gates() -> None:
    kinds = attribute("edge_kinds", 29, "stream,sync?")
    nodes = [N(0), N(1, ctrl=[0]), N(2, [0]), N(3, [0, 2], attrs=kinds)]
    for window in (0, 50):
        feeder = Feeder(trace(nodes), gate=["data"], window=window)
        assert feeder.ready() == [0, 1, 3]
        feeder = Feeder(trace(nodes), gate=["call", "stream"], window=window)
        assert feeder.ready() == [0, 2]
        feeder = Feeder(trace(nodes), gate=["sync"], inferred=False, window=window)
        assert feeder.ready() == [0, 1, 2, 3]
        feeder = Feeder(trace(nodes), gate=["sync"], window=window)
        assert feeder.ready() == [0, 1, 2]
    with pytest.raises(FeederError, match="no edge kind 'magic'"):
        Feeder(trace(nodes), gate=["magic"])


def test_fields_and_presence() -> None:
    attrs = attribute("is_cpu_op", 7, 0) + attribute("comm_size", 13, 7) + attribute("x", 29, "y")
    attrs += attribute("duration_ns", 9, 4_600) + attribute("pg_name", 29, "1")
    data = trace(
        [N(0, name="a", duration=5, attrs=attrs), N(1, attrs=attribute("is_cpu_op", 27, 1))]
    )
    for window in (0, 5):
        first, second = list(Feeder(data, window=window))
        assert (first.name, first.duration_ns, first.start_ns) == ("a", 4_600, None)
        assert (first.is_cpu_op, first.comm_size, first.pg_name) == (False, 7, "1")
        assert (first.comm_tag, first.num_ops) == (None, None)
        assert first.attributes["x"] == "y"
        assert second.is_cpu_op is True
        assert second.comm_size is None


def test_edge_listed_twice() -> None:
    for window in (0, 3):
        assert len(list(Feeder(trace([N(0), N(1, [0, 0], [0])]), window=window))) == 2


def test_window_is_bounded_and_strict_when_asked() -> None:
    chain = trace([N(0), *(N(i, [i - 1]) for i in range(1, 200))])
    feeder = Feeder(chain, window=8)
    assert len(list(feeder)) == 200
    assert feeder.counts().peak_held == 8
    backward = trace([*(N(i, [i - 1]) for i in range(199, 0, -1)), N(0)])
    assert len(list(Feeder(backward, window=8))) == 200
    with pytest.raises(FeederError) as caught:
        Feeder(backward, window=8, strict_window=True)
    assert caught.value.code is Code.WINDOW_FULL


@pytest.mark.parametrize("window", [0, 3])
def test_compressed_and_streamed(tmp_path: Path, window: int) -> None:
    data = trace(DIAMOND)
    forms = {
        "plain.et": data,
        "packed.et.gz": gzip.compress(data[:20]) + gzip.compress(data[20:]),
        "packed.et.zst": zstandard.compress(data),
    }
    for name, content in forms.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert [node.id for node in Feeder(path, window=window)] == [0, 1, 2, 3]
        assert [node.id for node in Feeder(io.BytesIO(content), window=window)] == [0, 1, 2, 3]
        with path.open("rb", buffering=0) as file:
            assert [node.id for node in Feeder(file, window=window)] == [0, 1, 2, 3]
    (tmp_path / "cut.et.gz").write_bytes(gzip.compress(data)[:-9])
    with pytest.raises(Exception, match="cut"):
        list(Feeder(tmp_path / "cut.et.gz", window=window))


def test_streams_cannot_be_rewound() -> None:
    feeder = Feeder(io.BytesIO(trace(DIAMOND)), window=2)
    list(feeder)
    with pytest.raises(FeederError) as caught:
        feeder.rewind()
    assert caught.value.code is Code.NOT_SEEKABLE


def test_missing_file_is_named(tmp_path: Path) -> None:
    for window in (0, 3):
        with pytest.raises(Exception, match=r"none\.et"):
            Feeder(tmp_path / "none.et", window=window)


def test_set_of_ranks(tmp_path: Path) -> None:
    size = attribute("comm_size", 9, 64) + attribute("comm_type", 9, 0)
    for rank in range(3):
        nodes = [N(0), N(1, [0], type=7, attrs=size), N(2, [1])]
        (tmp_path / f"t.{rank}.et").write_bytes(trace(nodes))
    ranks = FeederSet(tmp_path)
    assert [ranks.next()[1] for _ in range(3)] == [0, 1, 2]
    assert ranks.next_collective_ready() is None
    for rank in (0, 1):
        ranks.done(rank, 0)
    assert ranks.next_collective_ready() is None
    assert 'group "": node 1 of rank 0, node 1 of rank 1, wait for rank 2' in ranks.blocked()
    ranks.done(2, 0)
    found = ranks.next_collective_ready()
    assert found is not None
    assert found.members == {0: 1, 1: 1, 2: 1}
    order = [(rank, node.id) for rank, node in FeederSet(tmp_path / "t")]
    assert order == [(rank, node) for node in range(3) for rank in range(3)]


def test_set_tells_disagreement() -> None:
    def one(kind: int) -> bytes:
        return trace([N(0, type=7, attrs=attribute("comm_type", 9, kind))])

    ranks = FeederSet({0: one(0), 1: one(2)})
    with pytest.raises(FeederError, match="disagree") as caught:
        ranks.next_collective_ready()
    assert caught.value.code is Code.MISMATCH
