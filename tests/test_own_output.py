"""A law: of what we make of a sound run, our rules find no error, for ASTRA-sim neither."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st
from recordings import Profile

from chakra_et import CollectiveType, NodeType, convert, passes
from chakra_et.model import TraceSet
from chakra_et.validators import validate

RANKS: Final = 4
KINDS: Final = {
    "allreduce": (CollectiveType.ALL_REDUCE, "AllReduce_Sum_f32_RING_LL"),
    "_allgather_base": (CollectiveType.ALL_GATHER, "AllGather_RING_LL"),
    "reduce_scatter_single": (CollectiveType.REDUCE_SCATTER, "ReduceScatter_Sum_f32_RING_LL"),
    "all_to_allv": (CollectiveType.ALL_TO_ALL, "SendRecv"),
    "broadcast_oop": (CollectiveType.BROADCAST, "Broadcast_RING_LL"),
}
GROUPS: Final = {"0": (0, 1, 2, 3), "7": (0, 1), "8": (2, 3), "9": (1, 2)}


@dataclass(frozen=True)
class Step:
    """A collective of a run: how it is told, and what carries it on each rank."""

    kind: str
    elements: int
    group: str | None
    """None is a group of one rank, called by an address."""
    told: str
    carrier: str
    pieces: tuple[int, ...]

    def ranks(self) -> tuple[int, ...]:
        return tuple(range(RANKS)) if self.group is None else GROUPS[self.group]

    @property
    def size(self) -> int | None:
        return None if self.told == "name" else 4 * self.elements


def record(step: Step, rank: int) -> dict[str, Any]:
    """What a record of the collective says of it."""
    group = f"{94_000 + rank}" if step.group is None else step.group
    members = "" if step.group is None else str(list(GROUPS[group]))
    size = 1 if step.group is None else len(GROUPS[group])
    return {
        "Collective name": step.kind, "In msg nelems": step.elements, "dtype": "Float",
        "Group size": size, "Process Group Name": group, "Process Group Ranks": members,
    }  # fmt: skip


def launch(profile: Profile, step: Step, at: float, piece: int) -> None:
    """One piece of device work of a collective, and the call that launched it."""
    name = f"ncclDevKernel_{KINDS[step.kind][1]}(ncclDevKernelArgsStorage<4096ul>)"
    category = "kernel"
    if step.carrier == "own kernel":
        name = "some_library::exchange<float>()"
    elif step.carrier == "copies":
        name, category = "Memcpy PtoP (Device -> Device)", "gpu_memcpy"
    correlation = len(profile.events) + 1
    profile.call("cudaLaunchKernel", at + 10 + 2 * piece, 1, correlation)
    profile.kernel(name, at + 20 + 12 * piece, 10, correlation, cat=category, stream=20)


def played(steps: list[Step], rank: int) -> Profile:
    """The profile of one rank of a run."""
    config = [{"pg_name": n, "ranks": list(r), "pg_size": len(r)} for n, r in GROUPS.items()]
    profile = Profile(info={"rank": rank, "world_size": RANKS, "pg_config": config})
    profile.op("aten::add", 0, 5)
    for place, step in enumerate(steps):
        at = 100.0 + 200 * place
        if rank not in step.ranks():
            continue
        if step.told == "record":
            profile.op("record_param_comms", at, 50, **record(step, rank))
        elif step.told == "range":
            shapes = {"Input Dims": [[step.elements]], "Input type": ["float"]}
            span = f"nccl:{step.kind.strip('_')}"
            profile.op(span, at, 50, cat="user_annotation", **shapes)
        for piece in range(step.pieces[rank]):
            launch(profile, step, at, piece)
    return profile


def told_steps() -> st.SearchStrategy[Step]:
    """Steps whose record or range tells type and size, or of which the kernel's name is all."""
    kinds, elements = st.sampled_from(sorted(KINDS)), st.integers(1, 1 << 20)
    pieces = st.tuples(*[st.integers(1, 3)] * RANKS)
    carriers = st.sampled_from(["library", "own kernel", "copies"])
    groups = st.sampled_from([None, *GROUPS])
    by_record = st.builds(Step, kinds, elements, groups, st.just("record"), carriers, pieces)
    # Neither a range nor a name tells the group: no rank waits for another in it.
    world, library = st.just("0"), st.just("library")
    by_range = st.builds(Step, kinds, elements, world, st.just("range"), carriers, pieces)
    one = st.just((1,) * RANKS)
    bare = st.sampled_from(sorted(set(KINDS) - {"all_to_allv"}))
    by_name = st.builds(Step, bare, elements, world, st.just("name"), library, one)
    return st.one_of(by_record, by_range, by_name)


@given(st.lists(told_steps(), max_size=6))
def test_every_collective_is_there_once_and_no_rule_finds_an_error(steps: list[Step]) -> None:
    with TemporaryDirectory() as folder:
        paths = [played(steps, r).write(Path(folder) / f"device.{r}.json") for r in range(RANKS)]
        traces = TraceSet({r: convert(device=path).trace for r, path in enumerate(paths)})
    for rank, trace in traces.items():
        found = trace.nodes.where(type=NodeType.COMM_COLL)
        wanted = [s for s in steps if rank in s.ranks()]
        assert [(n.comm_type, n.comm_size) for n in found] == [
            (KINDS[s.kind][0], s.size) for s in wanted
        ]
        assert [n.duration_ns for n in found] == [12_000 * s.pieces[rank] - 2000 for s in wanted]
    assert validate(traces).exit_code() == 0
    assert passes.cure(traces, "astra-sim").left.exit_code() == 0
