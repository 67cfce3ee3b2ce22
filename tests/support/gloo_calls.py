"""Calls of four ranks over gloo, run in an interpreter of its own: `python gloo_calls.py FOLDER`.

Each scenario leaves `NAME.RANK.json` in the folder: what the rank saw, or the text of its error.
"""

# mypy: disable-error-code="import-not-found,no-untyped-call,attr-defined"

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from chakra_et.benchmark.comms import values
from chakra_et.benchmark.comms.agree import agree
from chakra_et.benchmark.comms.call import DELAY, RECV, SEND, Call, Group, Plan, Settings
from chakra_et.benchmark.comms.listing import Listing
from chakra_et.errors import ChakraError

WORLD = Group("", (0, 1, 2, 3))
PART = Group("7", (1, 3))


@dataclass
class Calls:
    """The calls of four ranks, as somebody writes a program."""

    of: dict[int, list[Call]] = field(default_factory=lambda: {rank: [] for rank in range(4)})

    def all(self, kind: str, *tensors: int, group: Group = WORLD, **more: Any) -> None:
        """A collective to which all members give the same, or each its own `by_rank`."""
        by_rank = more.pop("by_rank", {})
        for rank in group.ranks:
            own = {"tensors": tensors, **by_rank.get(rank, {})}
            place = sum(call.group == group for call in self.of[rank])
            self.of[rank].append(
                Call(node=len(self.of[rank]), kind=kind, group=group, place=place, **own, **more)
            )

    def message(self, source: int, target: int, elements: int, tag: int) -> None:
        for rank, kind, peer in ((target, RECV, source), (source, SEND, target)):
            self.of[rank].append(
                Call(
                    node=len(self.of[rank]), kind=kind, group=Group("", (source, target)), place=0,
                    tensors=(elements,), peer=peer, tag=tag, dtype_told=True,
                )
            )  # fmt: skip


def every_kind() -> Calls:
    """Every kind of call, in parts of the world, of many types, uneven, empty, several at once."""
    calls = Calls()
    for dtype in ("float32", "float16", "bfloat16", "int64", "int8", "uint8", "bool", "int16"):
        calls.all("ALL_REDUCE", 45, dtype=dtype, dtype_told=True)
        calls.all("ALL_GATHER", 8, dtype=dtype, dtype_told=True, group=PART)
    for group in (WORLD, PART):
        shares = {rank: {"tensors": (5 * rank,)} for rank in group.ranks}
        sends = {
            rank: {"sends": tuple(rank + 2 * to for to in group.ranks)} for rank in group.ranks
        }
        for rank, told in sends.items():
            told |= {"tensors": (sum(told["sends"]),), "dtype": "int32"}
            shares[rank]["dtype"] = "float64"
        root = group.ranks[-1]
        members = len(group.ranks)
        for size in (60, 0):
            calls.all("ALL_REDUCE", size, group=group, is_async=True)
            calls.all("BROADCAST", size, root=root, group=group)
            calls.all("REDUCE", size, root=root, group=group)
            calls.all("ALL_GATHER", size, group=group)
            calls.all("GATHER", size, root=root, group=group)
            whole = {root: {"tensors": (size * members,)}}
            calls.all("SCATTER", size, root=root, group=group, by_rank=whole)
            calls.all("REDUCE_SCATTER", size * members, group=group)
            calls.all("ALL_TO_ALL", size * members, group=group)
        calls.all("ALL_REDUCE", 7, 3, 30, coalesced=True, group=group)
        calls.all("ALL_GATHER", 7, 3, coalesced=True, group=group)
        calls.all("REDUCE_SCATTER", 8 * members, 3 * members, coalesced=True, group=group)
        calls.all("ALL_GATHER", group=group, by_rank=shares)
        calls.all("REDUCE_SCATTER", 4 * members + 1, group=group)
        calls.all("ALL_TO_ALL", group=group, by_rank=sends)
        calls.all("BARRIER", 0, group=group)
    for source in range(4):
        calls.message(source, (source + 1) % 4, 100, tag=source)
    calls.message(3, 1, 0, tag=9)
    return calls


def reused_buffers() -> Calls:
    """One call after the other, of different sizes."""
    calls = Calls()
    for size in (10, 500, 1000, 20, 999):
        calls.all("ALL_REDUCE", size, is_async=False)
    return calls


def spoilt() -> Calls:
    """What rank 2 hands in is not what it should be, see `_spoil`."""
    calls = Calls()
    calls.all("ALL_REDUCE", 10)
    calls.all("BROADCAST", 10, root=0)
    return calls


def delayed() -> Calls:
    """A delay of 3 ms on each rank."""
    calls = Calls()
    for rank in range(4):
        alone = Group("", (rank,))
        calls.all(DELAY, 4, group=alone, recorded_as="ALL_REDUCE", recorded_ns=3_000_000)
    return calls


def missing() -> Calls:
    """Rank 3 does not make the last call of its group."""
    calls = Calls()
    calls.all("ALL_REDUCE", 10, group=PART)
    calls.all("ALL_REDUCE", 20, group=PART)
    calls.of[3].pop()
    return calls


SCENARIOS: dict[str, Callable[[], Calls]] = {
    "every_kind": every_kind,
    "reused_buffers": reused_buffers,
    "spoilt": spoilt,
    "delayed": delayed,
    "missing": missing,
}


def agreed(name: str) -> dict[int, list[Call]]:
    """The calls of a scenario by rank, with all that one side tells the others."""
    listing = Listing(4, SCENARIOS[name]().of)
    problems = agree(listing)
    assert not problems, problems
    return listing.calls


def _plans(name: str) -> list[Plan]:
    calls = agreed(name)
    every = [call for each in calls.values() for call in each]
    groups = {call.group for call in every if not call.is_message and call.kind != DELAY}
    ordered = tuple(sorted(groups, key=lambda group: group.ranks))
    return [Plan(rank, tuple(calls), tuple(mine), ordered) for rank, mine in calls.items()]


def _program(name: str, plans: Sequence[Plan], folder: Path, rank: int) -> None:
    from chakra_et.benchmark.comms.running import run_plan
    from chakra_et.benchmark.comms.world import Seat

    settings = Settings(
        backend="gloo", warmup=0, iterations=2, timeout_s=1 if name == "missing" else 30
    )
    seat = Seat(rank, len(plans), "gloo", "cpu", settings.timeout_s, None)
    if name == "spoilt":
        _spoil()
    try:
        told = msgspec.json.encode(run_plan(seat, plans[rank], settings))
    except ChakraError as error:
        told = msgspec.json.encode(str(error))
    (folder / f"{name}.{rank}.json").write_bytes(told)


def _spoil(before: Callable[[Call, int], Any] = values.inputs) -> None:
    def spoilt_inputs(call: Call, rank: int) -> Any:
        return [one + (rank == 2) for one in before(call, rank)]

    setattr(values, "inputs", spoilt_inputs)  # noqa: B010 - to mypy it is a function for good


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
    from recording.ranks import run_ranks

    folder = Path(sys.argv[1])
    run_ranks([partial(_program, name, _plans(name), folder) for name in SCENARIOS], 4)


if __name__ == "__main__":
    main()
