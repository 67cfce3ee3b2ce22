"""How long transfers take on a described network."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chakra_et.definitions import CollectiveType
from chakra_et.errors import ChakraError
from chakra_et.network import (
    ALGORITHMS,
    Level,
    Measured,
    Network,
    Topology,
    fair_rates,
    load_topology,
    work_of,
)

ALL_REDUCE, ALL_GATHER = CollectiveType.ALL_REDUCE, CollectiveType.ALL_GATHER
REDUCE_SCATTER = CollectiveType.REDUCE_SCATTER

TWO_LEVELS = """
name = "small"
[[levels]]
name = "in a node"
ranks = 4
latency_us = 1
gigabytes_per_second = 100
[[levels]]
name = "between nodes"
latency_us = 10
gigabytes_per_second = 20
"""


def two_levels(algorithm: str = "ring") -> Topology:
    """Four ranks a node at 100 GB/s each, nodes at 20 GB/s."""
    inner = Level(name="in", ranks=4, latency_us=1, gigabytes_per_second=100)
    outer = Level(name="out", latency_us=10, gigabytes_per_second=20, algorithm=algorithm)
    return Topology(name="small", levels=[inner, outer])


# ---------------------------------------------------------------------------------------------
# Algorithms


@pytest.mark.parametrize(
    ("algorithm", "collective", "steps", "link_bytes"),
    [
        ("ring", ALL_REDUCE, 14, 1750),
        ("ring", REDUCE_SCATTER, 7, 875),
        ("ring", ALL_GATHER, 7, 7000),
        ("ring", CollectiveType.ALL_TO_ALL, 7, 875),
        ("ring", CollectiveType.BARRIER, 14, 0),
        ("ring", None, 7, 1000),
        ("halving-doubling", ALL_REDUCE, 6, 1750),
        ("halving-doubling", ALL_GATHER, 3, 7000),
        ("tree", ALL_REDUCE, 6, 2000),
        ("tree", CollectiveType.BROADCAST, 3, 1000),
        ("tree", ALL_GATHER, 7, 7000),
        ("direct", ALL_REDUCE, 2, 1750),
        ("direct", CollectiveType.ALL_TO_ALL, 1, 875),
    ],
)
def test_work_of_eight_ranks_with_1000_bytes_each(
    algorithm: str, collective: CollectiveType | None, steps: int, link_bytes: float
) -> None:
    assert work_of(algorithm, collective, 1000, 8) == (steps, link_bytes)


@given(st.integers(0, 1 << 40), st.integers(1, 4096), st.sampled_from(sorted(ALGORITHMS)))
def test_a_reduce_scatter_and_an_all_gather_are_an_all_reduce(
    part: int, ranks: int, algorithm: str
) -> None:
    whole = work_of(algorithm, ALL_REDUCE, part * ranks, ranks)
    halves = [
        work_of(algorithm, REDUCE_SCATTER, part * ranks, ranks),
        work_of(algorithm, ALL_GATHER, part, ranks),
    ]
    if algorithm != "tree" and ranks > 1:
        assert whole.steps == sum(half.steps for half in halves)
        assert whole.link_bytes == pytest.approx(sum(half.link_bytes for half in halves))


# ---------------------------------------------------------------------------------------------
# Measured times


TABLE = Measured.of([(1024, 10e3), (4096, 20e3), (65536, 80e3)])


def test_measured_times() -> None:
    assert [TABLE.time_ns(size) for size in (1024, 4096, 65536)] == pytest.approx(
        [10e3, 20e3, 80e3]
    )
    # Halfway between two sizes on a logarithmic scale lies the geometric mean of their times.
    assert TABLE.time_ns(2048) == pytest.approx((10e3 * 20e3) ** 0.5)
    assert TABLE.time_ns(1) == 10e3
    assert TABLE.time_ns(131072) == 160e3


@given(st.floats(1, 1e12), st.floats(1, 1e12))
def test_measured_times_grow_with_the_size(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert TABLE.time_ns(low) <= TABLE.time_ns(high) * (1 + 1e-9)


def test_what_was_measured_counts_inside_a_node() -> None:
    network = Network(load_topology("dgx-a100"))
    assert network.transfer_ns(ALL_REDUCE, 1 << 30, range(8)) == 8_193_000
    assert network.transfer_ns(REDUCE_SCATTER, 1 << 30, range(8)) == 4_096_500
    assert network.transfer_ns(ALL_GATHER, 1 << 27, range(8)) == 4_096_500


@pytest.mark.parametrize("rows", [[], [(2, 1.0), (2, 2.0)], [(4, 1.0), (2, 2.0)], [(1, 0.0)]])
def test_a_table_that_is_none(rows: list[tuple[float, float]]) -> None:
    with pytest.raises(ChakraError, match="do not ascend"):
        Measured.of(rows)


# ---------------------------------------------------------------------------------------------
# Sharing


def test_transfers_share_a_link_and_take_what_others_leave() -> None:
    rates = fair_rates([{"a": 1}, {"a": 1, "b": 1}, {"b": 1}, {}], {"a": 10.0, "b": 4.0})
    assert rates == [8.0, 2.0, 2.0, float("inf")]


USES = st.dictionaries(st.sampled_from("abcd"), st.floats(0.5, 3), min_size=1)


@given(st.lists(USES, min_size=1, max_size=12), st.lists(st.floats(1, 100), min_size=4, max_size=4))
def test_every_transfer_is_held_by_a_full_link_on_which_none_is_faster(
    transfers: list[dict[str, float]], capacities: list[float]
) -> None:
    capacity = dict(zip("abcd", capacities, strict=True))
    rates = fair_rates(transfers, capacity)
    load = {
        link: sum(r * uses.get(link, 0) for r, uses in zip(rates, transfers, strict=True))
        for link in capacity
    }
    assert all(load[link] <= capacity[link] * (1 + 1e-9) for link in capacity)
    for rate, uses in zip(rates, transfers, strict=True):
        assert any(
            load[link] >= capacity[link] * (1 - 1e-9)
            and all(
                other <= rate * (1 + 1e-9)
                for other, used in zip(rates, transfers, strict=True)
                if link in used
            )
            for link in uses
        )


# ---------------------------------------------------------------------------------------------
# Levels


def test_a_ring_inside_a_node_and_one_over_two() -> None:
    network = Network(two_levels())
    # 6 steps of 1 us, 1.5 times 1 MB at 100 GB/s.
    assert network.transfer_ns(ALL_REDUCE, 1_000_000, range(4)) == 6_000 + 15_000
    # 14 steps of 10 us, 1.75 MB at the 20 GB/s of a node.
    assert network.transfer_ns(ALL_REDUCE, 1_000_000, range(8)) == 140_000 + 87_500
    assert network.transfer_ns(ALL_REDUCE, 1_000_000, [3]) == 0


def test_half_the_bandwidth_takes_twice_as_long() -> None:
    whole, half = (Network(two_levels(), share) for share in (1.0, 0.5))
    assert whole.transfer_ns(None, 2_000_000, [0, 4]) == 10_000 + 100_000
    assert half.transfer_ns(None, 2_000_000, [0, 4]) == 10_000 + 200_000


def test_groups_of_the_same_nodes_share_their_links() -> None:
    network = Network(two_levels())
    groups = [[place, place + 4] for place in range(4)]
    alone = network.transfer_ns(ALL_REDUCE, 1_000_000, groups[0])
    together = network.transfer_ns(ALL_REDUCE, 1_000_000, groups[0], groups)
    assert (alone, together) == (20_000 + 50_000, 20_000 + 200_000)
    # Inside a node every rank has a link of its own.
    pairs = [[0, 1], [2, 3]]
    assert network.transfer_ns(None, 100_000, [0, 1], pairs) == 1_000 + 1_000


def test_a_hierarchical_all_reduce_is_its_three_phases() -> None:
    network = Network(two_levels("hierarchical"))
    whole = network.transfer_ns(ALL_REDUCE, 4_000_000, range(8))
    inside = network.transfer_ns(REDUCE_SCATTER, 4_000_000, range(4))
    columns = [[place, place + 4] for place in range(4)]
    across = network.transfer_ns(ALL_REDUCE, 1_000_000, columns[0], columns)
    gathered = network.transfer_ns(ALL_GATHER, 1_000_000, range(4))
    assert whole == inside + across + gathered


@given(st.integers(1, 1 << 32))
def test_hierarchical_halves_are_a_whole(size: int) -> None:
    network = Network(two_levels("hierarchical"))
    scattered = network.transfer_ns(REDUCE_SCATTER, 8 * size, range(8))
    gathered = network.transfer_ns(ALL_GATHER, size, range(8))
    whole = network.transfer_ns(ALL_REDUCE, 8 * size, range(8))
    assert abs(scattered + gathered - whole) <= 3


def test_a_topology_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    path.write_text(TWO_LEVELS)
    assert Network(load_topology(str(path))).transfer_ns(None, 20_000, [0, 4]) == 11_000


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name =", "title =", "unknown field `title`"),
        ("gigabytes_per_second = 20", "gigabytes_per_second = 0", "cannot be"),
        ("ranks = 4", "", "any number of ranks, but is not the last"),
        ("latency_us = 10", 'latency_us = 10\nalgorithm = "star"', "no algorithm 'star'"),
        ("[[levels]]", "[[level]]", "level"),
    ],
)
def test_a_topology_that_cannot_be(tmp_path: Path, old: str, new: str, problem: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(TWO_LEVELS.replace(old, new))
    with pytest.raises(ChakraError, match=problem):
        load_topology(str(path))


def test_ranks_that_a_topology_does_not_join() -> None:
    topology = Topology(
        name="one node",
        levels=[Level(name="in", ranks=4, latency_us=1, gigabytes_per_second=1)],
    )
    with pytest.raises(ChakraError, match="does not join ranks 0 and 4"):
        Network(topology).transfer_ns(ALL_REDUCE, 1, [0, 4])


def test_no_topology_of_that_name() -> None:
    with pytest.raises(ChakraError, match="dgx-a100"):
        load_topology("nope")
