"""Runs over gloo, made by hand: what each rank's host trace and profile say of a few transfers.

Ids, threads and inputs are as PyTorch records them: an operation asks on the main thread, a
collective runs on one of the two worker threads of its group, a message beside the operation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recordings import MAIN, PID, HostRecording, Profile

STEP_US = 1000
FLOAT = 4
OBJECT, NOTHING = "<Object>", "<None>"


def tensor(floats: int, number: int = 0) -> list[Any]:
    """A tensor as a host trace has it: ids, offset, elements, bytes of each, device."""
    return [900 + number, 950 + number, 0, floats, FLOAT, "cpu"]


@dataclass
class Rank:
    """What one rank records."""

    rank: int
    host: HostRecording
    profile: Profile
    number: int = 10
    used: dict[str, int] = field(default_factory=dict)

    def next(self) -> int:
        """The next record-function id."""
        self.number += 1
        return self.number


@dataclass
class GlooRun:
    """All ranks of a run with these groups beside that of all ranks, which is called "0"."""

    world: int
    groups: tuple[tuple[int, ...], ...] = ()
    now_us: float = 0.0
    ranks: list[Rank] = field(default_factory=list)

    def __post_init__(self) -> None:
        for rank in range(self.world):
            host, profile = HostRecording(pid=PID + rank), Profile()
            config = [
                {"pg_name": name, "pg_desc": "", "pg_size": len(ranks), "ranks": list(ranks)}
                for name, ranks in self.members().items()
                if rank in ranks
            ]
            profile.info = {"backend": "gloo", "rank": rank, "world_size": self.world}
            profile.info |= {"pg_count": len(self.members()), "pg_config": config}
            self.ranks.append(Rank(rank, host, profile))

    def members(self) -> dict[str, tuple[int, ...]]:
        """Global ranks of each group, by name."""
        every = (tuple(range(self.world)), *self.groups)
        return {str(place): ranks for place, ranks in enumerate(every)}

    def collective(
        self,
        name: str,
        ranks: tuple[int, ...],
        floats: int = 0,
        *,
        root: int = 0,
        late_us: dict[int, float] | None = None,
        step_us: float = STEP_US,
        together: bool = False,
        group: str | None = None,
        on: tuple[int, ...] | None = None,
        host_thread: int | None = None,
        named: bool = False,
    ) -> GlooRun:
        """A collective of the group with these members; `root` is a place in it.

        Worker threads begin 60 us after they were asked, some ranks `late_us` later than that; the
        next call of this object comes `step_us` later. With `together`, all end when the last does.
        `group` says which of several with these members it is, `on` which of them call it now.
        A `host_thread` beside the main one is in the host trace only. A call may be `named`: a
        functional one, which names its group.
        """
        latest = max((late_us or {}).values(), default=0) if together else 0
        if group is None:
            group = next(name for name, members in self.members().items() if members == ranks)
        for place, rank in enumerate(ranks):
            if on is not None and rank not in on:
                continue
            mine, after = self.ranks[rank], 60 + (late_us or {}).get(rank, 0)
            first = 10 * mine.number
            asks, given, taken = _asking(name, floats, len(ranks), place == root, root, first)
            if host_thread is not None:
                self._beside(mine, asks, given, f"gloo:{name}", taken, host_thread)
                continue
            around = self._functional(mine, name, given, group) if named else None
            self._ask(mine, asks, given, 0, 50, around)
            lasts = 600 + latest - (after - 60 if together else 0)
            self._range(mine, f"gloo:{name}", taken, after, lasts, self._thread(mine, group))
        self.now_us += step_us
        return self

    def _thread(self, rank: Rank, group: str) -> int:
        """The worker thread of a group whose turn it is."""
        used = rank.used[group] = rank.used.get(group, -1) + 1
        return MAIN + 10 * (int(group) + 1) + used % 2

    def message(
        self,
        source: int,
        target: int,
        ranks: tuple[int, ...],
        floats: int,
        tag: int,
        *,
        any_source: bool = False,
    ) -> GlooRun:
        """A message within the group with these members; ranks are global ones."""
        side = "recvAnySource" if any_source else "recv"
        self.ask_message(source, "send", ranks.index(target), floats, tag)
        self.ask_message(target, side, ranks.index(source), floats, tag)
        self.now_us += STEP_US
        return self

    def ask_message(
        self,
        rank: int,
        side: str,
        place: int,
        floats: int,
        tag: int,
        us: tuple[float, float, float, float] = (0, 50, 40, 700),
    ) -> None:
        """One side of a message with the rank at a `place` of some group.

        `us` says when the operation begins and how long it lasts, and the same of the range.
        """
        names = {"send": "c10d::send", "recv": "c10d::recv_"}
        name = names.get(side, "c10d::recv_any_source_")
        known = [place] if side in names else []
        mine = self.ranks[rank]
        data = tensor(floats, 10 * mine.number)
        self._ask(mine, name, [[data], OBJECT, *known, tag], *us[:2])
        self._range(mine, f"gloo:{side}", [data], *us[2:], MAIN)

    def _ask(
        self,
        rank: Rank,
        name: str,
        inputs: list[Any],
        after: float,
        lasts: float,
        around: int | None = None,
    ) -> None:
        number = self._asked(rank, name, inputs, parent=2 if around is None else around)
        self._profile(rank, name, number, after, lasts, MAIN, "cpu_op")

    def _asked(self, rank: Rank, name: str, inputs: list[Any], **place: int) -> int:
        number = rank.next()
        shapes, kinds = [[] for _ in inputs], ["" for _ in inputs]
        schema = f"{name}(Tensor[] tensors) -> __torch__.torch.classes.c10d.Work"
        told = (inputs, shapes, kinds)
        rank.host.op(number, name, rf_id=number, inputs=told, schema=schema, **place)
        return number

    def _beside(
        self, rank: Rank, asks: str, given: list[Any], name: str, taken: list[Any], thread: int
    ) -> None:
        """A collective that a thread asked for which no profile shows, as in the host trace."""
        self._asked(rank, asks, given, tid=thread)
        self._taken(rank, name, taken, parent=2, tid=thread)

    def _functional(self, rank: Rank, name: str, given: list[Any], group: str) -> int:
        """The operation around a call that names its group."""
        number, called = rank.next(), f"_c10d_functional::{name}"
        (one,) = given[0]
        inputs = ([one, "sum", group], [[one[3]], [], []], ["Tensor(float)", "String", "String"])
        rank.host.op(number, called, rf_id=number, inputs=inputs)
        self._profile(rank, called, number, -5, 60, MAIN, "cpu_op")
        return number

    def _range(
        self, rank: Rank, name: str, inputs: list[Any], after: float, lasts: float, tid: int
    ) -> None:
        number = self._taken(rank, name, inputs, parent=rank.number)
        self._profile(rank, name, number, after, lasts, tid, "user_annotation")

    def _taken(self, rank: Rank, name: str, inputs: list[Any], **place: int) -> int:
        number = rank.next()
        shapes, kinds = [[t[3]] for t in inputs], ["Tensor(float)" for _ in inputs]
        rank.host.op(number, name, rf_id=number, inputs=(inputs, shapes, kinds), **place)
        return number

    def _profile(
        self, rank: Rank, name: str, rf_id: int, after: float, lasts: float, tid: int, cat: str
    ) -> None:
        rank.profile.op(name, self.now_us + after, lasts, rf_id=rf_id, tid=tid, cat=cat)
        rank.profile.events[-1]["pid"] = PID + rank.rank

    def write(self, folder: Path) -> Path:
        """The pairs of all ranks, in a folder."""
        folder.mkdir(exist_ok=True)
        for rank in self.ranks:
            rank.host.write(folder / f"host.{rank.rank}.json")
            rank.profile.write(folder / f"device.{rank.rank}.json")
        return folder


def _asking(
    name: str, floats: int, size: int, is_root: bool, root: int, first: int
) -> tuple[str, list[Any], list[Any]]:
    """The operation that asks for a collective, its inputs, and the tensors of gloo's range.

    Tensors are numbered from `first` on.
    """
    one = tensor(floats, first)
    each = [tensor(floats, first + 1 + n) for n in range(size)]
    whole = tensor(size * floats, first)
    rest = [False, -1]
    if name == "broadcast":
        return "c10d::broadcast_", [[one], OBJECT, root, 0, *rest], [one]
    if name == "reduce":
        return "c10d::reduce_", [[one], OBJECT, OBJECT, root, 0, *rest], [one]
    if name == "all_gather":
        return "c10d::allgather_", [[each], [one], OBJECT, *rest], [one]
    if name == "gather":
        given = [[each] if is_root else [], [one], OBJECT, root, *rest]
        return "c10d::gather_", given, [one]
    if name == "scatter":
        given = [[one], [each] if is_root else [], OBJECT, root, *rest]
        return "c10d::scatter_", given, each if is_root else []
    if name == "all_to_all":
        return "c10d::alltoall_base_", [whole, whole, OBJECT, [], [], *rest], [whole]
    if name == "barrier":
        return "c10d::barrier", [tensor(1), OBJECT, [], *rest], []
    assert name == "all_reduce"
    return "c10d::allreduce_", [[one], OBJECT, OBJECT, NOTHING, *rest], [one]
