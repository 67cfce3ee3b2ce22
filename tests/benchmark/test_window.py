"""Which nodes a window holds: what its annotations called, and what began while they lasted."""

from __future__ import annotations

from traces import COMP, node, trace

from chakra_et.benchmark.host_tree import HostTree
from chakra_et.benchmark.window import nodes_in
from chakra_et.linker.window.cut import window


def test_a_window_is_every_time_of_its_annotation_on_all_threads() -> None:
    """From each start on and before each end, also where one lies within another."""
    told = [(10, 10), (12, 2), (30, 10), (9, 0), (19, 0), (20, 0), (35, 0), (40, 0)]
    nodes = [
        node(
            number, COMP, name="forward" if took else "aten::relu", is_cpu_op=True, start=start,
            inclusive_ns=took,
        )
        for number, (start, took) in enumerate(told, 1)
    ]  # fmt: skip
    inside = nodes_in(HostTree.of(trace(*nodes)), window(None, "forward"))
    assert inside.tolist() == [True, True, True, False, True, False, True, False]
