"""Collective algorithms: they do what they promise, in as many messages as the papers say."""

from __future__ import annotations

from collections import Counter
from math import log2
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import chakra_et
from chakra_et import CollectiveType, NodeType
from chakra_et.build import Workload
from chakra_et.cli.generate import generate_command
from chakra_et.replay import AlphaBeta, replay
from chakra_et.workloads import Roofline, device
from chakra_et.workloads.algorithms import ALGORITHMS, Algorithm, Transfer, algorithm
from chakra_et.workloads.msccl import msccl_messages, read_msccl
from chakra_et.workloads.transfers import messages

AR, AG, RS = CollectiveType.ALL_REDUCE, CollectiveType.ALL_GATHER, CollectiveType.REDUCE_SCATTER
PAIRS = [(name, type) for name, (_, types) in ALGORITHMS.items() for type in types]


@given(st.sampled_from(PAIRS), st.integers(1, 4), st.integers(0, 2), st.integers(2, 5))
def test_every_algorithm_does_what_it_promises(
    pair: tuple[str, CollectiveType], per_node: int, bits: int, odd: int
) -> None:
    name, type = pair
    powers = name in ("recursive-doubling", "halving-doubling")
    algorithm(name, type, 2 << bits if powers else odd * per_node, per_node).check()


def test_a_wrong_algorithm_is_found() -> None:
    twice = [[Transfer(0, 1, 0, reduce=True)], [Transfer(0, 1, 0, reduce=True)]]
    with pytest.raises(ValueError, match="adds something twice"):
        Algorithm("x", AR, 2, 1, tuple(twice)).check()
    with pytest.raises(ValueError, match="rank 0 ends with"):
        Algorithm("x", AR, 2, 1, tuple(twice[:1])).check()
    with pytest.raises(ValueError, match="rank 0 lacks the chunk sent"):
        Algorithm("x", AG, 2, 2, ([Transfer(0, 1, 1)],)).check()


def sent(name: str, type: CollectiveType, ranks: int, size: int, per_node: int = 1) -> Any:
    """Messages and bytes that rank 0 sends."""
    made = algorithm(name, type, ranks, per_node)
    trace = Workload(rank=ranks).traces(messages(made, size, Roofline(device("a100"))))[0]
    sizes = [node.comm_size for node in trace.nodes.where(type=NodeType.COMM_SEND)]
    return len(sizes), sum(sizes)


@pytest.mark.parametrize("n", [2, 4, 8])
def test_messages_and_bytes_of_a_rank(n: int) -> None:
    # Thakur, Rabenseifner, Gropp (2005).
    size = 1 << 16
    assert sent("ring", AR, n, size) == (2 * (n - 1), 2 * (n - 1) * size // n)
    assert sent("ring", AG, n, size) == (n - 1, (n - 1) * size // n)
    assert sent("recursive-doubling", AR, n, size) == (log2(n), log2(n) * size)
    assert sent("recursive-doubling", AG, n, size) == (log2(n), (n - 1) * size // n)
    assert sent("recursive-doubling", RS, n, size) == (log2(n), (n - 1) * size // n)
    assert sent("halving-doubling", AR, n, size) == (2 * log2(n), 2 * (n - 1) * size // n)
    assert sent("direct", RS, n, size) == (n - 1, (n - 1) * size // n)


def test_a_hierarchy_sends_little_between_nodes() -> None:
    made = algorithm("hierarchical", AR, 8, 4)
    between: Counter[bool] = Counter(
        t.source // 4 != t.target // 4 for step in made.steps for t in step
    )
    # Each rank's quarter goes to the other node and back, in halves; within nodes 2 x 3 quarters.
    assert between == {True: 8 * 2, False: 8 * 2 * 3 * 2}


@pytest.mark.parametrize(("name", "type"), PAIRS)
def test_all_run_to_the_end(name: str, type: CollectiveType) -> None:
    made = algorithm(name, type, 4, 2)
    traces = Workload(rank=4).traces(messages(made, 1 << 20, Roofline(device("a100"))))
    assert not chakra_et.validate(traces, "astra-sim").outcomes
    done = replay(traces, network=AlphaBeta(500, 50e9))
    assert done.matched == sum(
        len(t.nodes.where(type=NodeType.COMM_SEND)) * 2 for t in traces.values()
    )
    assert not done.unmatched


def test_a_ring_takes_the_time_of_its_steps() -> None:
    # Additions take no time here: 2 (n - 1) (alpha + S / n / bandwidth), 1 byte a ns.
    made = algorithm("ring", AR, 4)
    traces = Workload(rank=4).traces(messages(made, 4000, lambda operator: 0))
    done = replay(traces, network=AlphaBeta(500, 1e9))
    nodes = done.traces[0].nodes
    timed = nodes.where(type=NodeType.COMM_RECV)
    end = max((n.start_ns or 0) + n.duration_ns for n in timed)
    start = min(n.start_ns or 0 for n in timed)
    assert end - start == 6 * (500 + 1000)


def test_what_there_is_no_algorithm_for() -> None:
    for words, says in (
        (("sparkle", AR, 4), "no algorithm 'sparkle'. It is one of ring"),
        (("tree", AG, 4), "tree does no all_gather. It does all_reduce"),
        (("recursive-doubling", AR, 6), "needs a power of two, not 6 ranks"),
        (("hierarchical", AR, 6, 4), "6 ranks do not fill nodes of 4"),
        (("ring", AR, 1), "a collective of 1 ranks"),
    ):
        with pytest.raises(chakra_et.ChakraError, match=says):
            algorithm(*words)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------
# MSCCL

RING = """<algo name="ring" nchannels="1" nchunksperloop="2" proto="Simple" ngpus="2" coll="allreduce">
  <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrcs" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="nop" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="0" depid="0" deps="1" hasdep="0"/>
      <step s="1" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="2" depid="0" deps="2" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrcs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
"""  # noqa: E501


def test_an_algorithm_of_msccl(tmp_path: Path) -> None:
    path = tmp_path / "ring.xml"
    path.write_text(RING)
    made = msccl_messages(read_msccl(path), 1 << 20, Roofline(device("a100")))
    traces = Workload(rank=2).traces(made)
    types = [node.type for node in traces[0].nodes]
    assert types == [
        NodeType.COMM_SEND,
        NodeType.COMM_RECV, NodeType.COMP, NodeType.COMM_SEND,
        NodeType.COMM_RECV,
        NodeType.COMP, NodeType.COMP,
    ]  # fmt: skip
    assert [node.data_deps for node in traces[0].nodes] == [[], [1], [2], [3], [4], [4], [5, 6]]
    assert {n.comm_size for n in traces[0].nodes.where(type=NodeType.COMM_SEND)} == {1 << 19}
    assert not chakra_et.validate(traces, "astra-sim").outcomes


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("<algo", "<also", "the root is <also>|not valid XML"),
        ("</algo>", "", "not valid XML"),
        ('type="rrcs"', 'type="jump"', "gpu 0, tb 0, step 1: unknown type of step: 'jump'"),
        ('send="1"', 'send="7"', "gpu 0, tb 0: no peer 7"),
        ('send="1"', 'send="-1"', "gpu 0, tb 0, step 0: s without a peer"),
        ('send="1"', 'send="one"', "gpu 0, tb 0: send is 'one', no number"),
        ('deps="2"', 'deps="9"', "waits for tb 0, step 9, which is not there"),
        ('gpu id="1"', 'gpu id="2"', r"ranks \[0, 2\]. They must count from 0"),
        ('nchunksperloop="2"', 'nchunksperloop="0"', "nchunksperloop is below 1"),
    ],
)
def test_what_is_no_algorithm_of_msccl(old: str, new: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_text(RING.replace(old, new, 1))
    with pytest.raises(chakra_et.FormatError, match=says):
        read_msccl(path)


def test_thread_blocks_that_wait_for_each_other(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_text(RING.replace('depid="-1" deps="-1"', 'depid="1" deps="1"', 1))
    made = msccl_messages(read_msccl(path), 64, lambda operator: 0)
    with pytest.raises(chakra_et.ChakraError, match="wait for each other in a cycle"):
        Workload(rank=2).traces(made)


def test_on_the_command_line(tmp_path: Path) -> None:
    xml = tmp_path / "ring.xml"
    xml.write_text(RING)
    for words in (
        ["collective", "hierarchical", "--ranks", "8", "--per-node", "4"],
        ["collective", "direct", "--collective", "all-to-all"],
        ["msccl", str(xml), "--size", "4096"],
    ):
        out = tmp_path / words[1].replace("/", "_")
        result = CliRunner().invoke(generate_command, [*words, "-o", str(out)])
        assert result.exit_code == 0, result.output
        assert not chakra_et.validate(out, "astra-sim").outcomes
    with pytest.raises(chakra_et.ChakraError, match="no collective 'gossip'"):
        CliRunner().invoke(
            generate_command, ["collective", "ring", "--collective", "gossip", "-o", "x"],
            catch_exceptions=False,
        )  # fmt: skip
