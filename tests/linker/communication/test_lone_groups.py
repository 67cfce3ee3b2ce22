"""Groups of one rank, and of all, that older traces call by an address of each process."""

from __future__ import annotations

import json
from pathlib import Path

from recordings import HostRecording, Profile

from chakra_et import convert, convert_directory, passes
from chakra_et.conversion import trace_set
from chakra_et.model import TraceSet
from chakra_et.validators import validate

TENSORS = [[[5, 6, 0, 1000, 4, "cuda:0"]]]


def recorded(folder: Path, ranks: int, addresses: list[tuple[int, int]]) -> TraceSet:
    """A run in which each rank has collectives of groups: pairs of an address and a size.

    The addresses of groups of one rank differ between ranks.
    """
    folder.mkdir()
    for rank in range(ranks):
        host = HostRecording(pid=4000 + rank)
        for number, (address, size) in enumerate(addresses):
            own = address + rank if size == 1 else address
            values = [TENSORS, 12, own, 0, "allreduce", [], [], size]
            host.op(3 + number, "record_param_comms", inputs=(values, [[]], ["x"]))
        host.write(folder / f"host.{rank}.json")
    return trace_set(convert_directory(folder, None))


def test_a_group_of_one_rank_has_that_rank(tmp_path: Path) -> None:
    traces = recorded(tmp_path / "run", 2, [(94_000, 1), (95_000, 1), (94_000, 1)])
    groups = {rank: {g.name: g.ranks for g in t.groups} for rank, t in traces.items()}
    assert groups == {r: {f"{94_000 + r}": (r,), f"{95_000 + r}": (r,)} for r in (0, 1)}
    assert validate(traces).rules <= {"ET303"}
    cured = passes.cure(traces, "astra-sim")
    assert not any(n.type.name == "COMM_COLL" for t in cured.traces.values() for n in t.nodes)
    assert cured.left.exit_code() == 0


def test_a_group_whose_members_nobody_knows_lacks_no_rank(tmp_path: Path) -> None:
    """Two of four ranks may be any two: who else takes part is not told."""
    traces = recorded(tmp_path / "run", 4, [(94_000, 1), (77_000, 2)])
    assert validate(traces).rules <= {"ET303", "ET404"}


def test_a_group_of_all_ranks_that_each_calls_by_an_address_is_one(tmp_path: Path) -> None:
    """Neither file tells how many ranks there are, but for the group's size and the files."""
    folder = tmp_path / "run"
    folder.mkdir()
    for rank in range(2):
        values = [TENSORS, 12, 77_000 + rank, 0, "allreduce", [], [], 2]
        host = HostRecording(pid=4000 + rank)
        host.op(3, "record_param_comms", inputs=(values, [[]], ["x"]))
        host.write(folder / f"host.{rank}.json")
    traces = trace_set(convert_directory(folder, None))
    assert validate(traces).rules <= {"ET303", "ET404"}
    cured = passes.cure(traces, "astra-sim")
    assert cured.left.exit_code() == 0
    assert passes.comm_groups(cured.traces) == {"1": [0, 1]}


def test_an_empty_list_is_of_all_ranks_only_if_the_group_is_as_large(tmp_path: Path) -> None:
    entries = [("0", 4), ("1", 1), ("2", 2), ("3", 4)]
    config = [{"pg_name": name, "ranks": [], "pg_size": size} for name, size in entries]
    profile = Profile(info={"rank": 3, "world_size": 4, "pg_config": config}).op("aten::add", 0, 5)
    trace = convert(device=profile.write(tmp_path / "device.3.json")).trace
    everyone = (0, 1, 2, 3)
    assert [g.ranks for g in trace.groups] == [everyone, (3,), (), everyone]


def test_a_host_trace_alone_tells_the_world_by_its_default_group(tmp_path: Path) -> None:
    text = json.dumps([{"pg_name": "0", "ranks": [], "group_size": 8},
                       {"pg_name": "1", "ranks": [], "group_size": 1}])  # fmt: skip
    host = HostRecording().op(3, "## process_group:init ##", inputs=([text], [[]], ["String"]))
    trace = convert(host=host.write(tmp_path / "host.5.json")).trace
    assert [g.ranks for g in trace.groups] == [tuple(range(8)), (5,)]
