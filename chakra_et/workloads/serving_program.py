"""What every rank does in a text of LLMServingSim, as a graph.

Rows follow one another: what moves in, the computation, its collective. Halves of an interleaved
batch are two such chains, and channels of processing in memory run side by side; the device itself
runs one row at a time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from chakra_et.build import Rank, Workload
from chakra_et.build.graph import Done
from chakra_et.errors import ChakraError
from chakra_et.workloads.serving_text import CACHE, Data, Mode, Row, ServingText
from chakra_et.workloads.text_summary import Communicated

_STAGE: Final = "stage"
_MOST_RANKS: Final = 1 << 20


@dataclass(frozen=True)
class ServingLayout:
    """The text's ranks on a grid.

    Axes are tp, pp where there are stages, and dp, neighbours first, as LLMServingSim builds its
    network. A prefill instance has a second set of ranks beside it, its decode instance, which
    receives keys and values (axis `role`).
    """

    text: ServingText
    workload: Workload

    def family(self, row: Row) -> str:
        """The groups that the collective of a row is for."""
        if not row.involved:
            return _STAGE
        return "-".join(_axes_of(self.workload, row.involved))


def lay_out_serving(
    text: ServingText,
    ranks: int | None = None,
    dims: Sequence[int] = (),
    facts: Mapping[str, str] | None = None,
) -> ServingLayout:
    """Place `ranks` ranks, or those of a network with `dims` ranks in each dimension.

    Raises ChakraError where the text and these do not fit together.
    """
    if dims and (min(dims) < 1 or (ranks is not None and ranks != math.prod(dims))):
        raise _unfit(text, f"a network of {'x'.join(map(str, dims))} has not {ranks} ranks")
    count = math.prod(dims) if dims else ranks or text.stages
    if not 1 <= count <= _MOST_RANKS or count % text.stages:
        raise _unfit(text, f"{count} ranks for {text.stages} stages")
    sizes = list(dims) or [count // text.stages] + [text.stages] * (text.stages > 1)
    if text.stages > 1 and (len(sizes) < 2 or sizes[1] != text.stages):
        raise _unfit(text, f"the second dimension is that of the {text.stages} stages")
    if text.dimensions not in (0, len(sizes)):
        raise _unfit(text, f"collectives name {text.dimensions} dimensions, not {len(sizes)}")
    names = ["tp", *(["pp"] if text.stages > 1 else []), "dp", *(f"dim{n}" for n in range(3, 99))]
    axes = dict(zip(names, sizes, strict=False))
    if text.mode is Mode.PREFILL and any(_is_sent(text, row) for row in text.rows):
        axes["role"] = 2
    workload = Workload(axes, facts=facts)
    own = [axis for axis in axes if axis not in ("pp", "role")]
    workload.groups(_STAGE, axes=own)
    for flags in dict.fromkeys(row.involved for row in text.rows if row.involved):
        chosen = _axes_of(workload, flags)
        if len(chosen) > 1:
            workload.groups("-".join(chosen), axes=chosen)
    return ServingLayout(text, workload)


def _axes_of(workload: Workload, involved: Sequence[bool]) -> list[str]:
    axes = [axis for axis in workload.grid.axes if axis != "role"]
    return [axis for axis, is_in in zip(axes, involved, strict=True) if is_in]


def _unfit(text: ServingText, problem: str) -> ChakraError:
    return ChakraError(
        problem, path=text.path,
        remedy="Give --ranks N, or the network with --dims AxB: tp, stages if any, dp.",
    )  # fmt: skip


def serving_program(layout: ServingLayout, steps: int = 1) -> Callable[[Rank], None]:
    """The program of every rank."""

    def run(rank: Rank) -> None:
        text = layout.text
        if "role" in layout.workload.grid.axes and rank.coordinate("role") == 1:
            _decode_side(rank, text, steps)
            return
        chain = _Chain(rank, layout)
        for _ in range(steps):
            chain.step()

    return run


def _decode_side(rank: Rank, text: ServingText, steps: int) -> None:
    """The paired decode instance: it receives what its rank of the prefill instance sends."""
    stage = rank.coordinate("pp") if text.stages > 1 else 0
    for _ in range(steps):
        for number in text.stage(stage):
            row = text.rows[number]
            if _is_sent(text, row):
                with rank.on(layer=number, phase="decode"):
                    rank.receive(
                        rank.peer(role=-1), row.size_bytes, name=f"{row.name} keys and values"
                    )


def _is_sent(text: ServingText, row: Row) -> bool:
    """Whether a row hands keys and values to the decode instance."""
    return text.mode is Mode.PREFILL and row.collective is None and row.size_bytes > 0


class _Chain:
    """The rows of one rank. `fronts` has what the next row of each half of the batch waits for."""

    def __init__(self, rank: Rank, layout: ServingLayout) -> None:
        self._rank = rank
        self._layout = layout
        self._text = text = layout.text
        self._stage = rank.coordinate("pp") if text.stages > 1 else 0
        self._fronts: dict[int, list[Done]] = {1: [], 2: []}
        self._phase = text.mode.value.lower() if text.mode in (Mode.PREFILL, Mode.DECODE) else None

    def step(self) -> None:
        """One batch."""
        for row in self._text.cache:
            moved = self._cache(row)
            self._fronts = {half: [moved] for half in self._fronts}
        if self._stage:
            size = self._boundary(self._stage)
            received = self._rank.receive(
                self._rank.peer(pp=-1), size, name="receive activations", after=self._all()
            )
            self._fronts = {half: [received] for half in self._fronts}
        numbers = self._text.stage(self._stage)
        for channels, run in groupby(numbers, lambda n: self._text.rows[n].channel is not None):
            (self._side_by_side if channels else self._in_order)(list(run))
        if self._stage < self._text.stages - 1:
            self._rank.send(
                self._rank.peer(pp=1), self._boundary(self._stage + 1), name="send activations",
                after=self._all(),
            )  # fmt: skip

    def _in_order(self, numbers: Sequence[int]) -> None:
        for number in numbers:
            row = self._text.rows[number]
            if row.expert is None or row.expert == self._place(number):
                self._set(row, self._run(number, self._front(row), stream=0))

    def _side_by_side(self, numbers: Sequence[int]) -> None:
        """Channels begin together, and what follows waits for all of them."""
        ends: dict[tuple[int, int | None], list[Done]] = {}
        for number in numbers:
            row = self._text.rows[number]
            before = ends.get((row.batch, row.channel)) or self._front(row)
            done = self._run(number, before, stream=f"pim {row.channel}")
            ends[row.batch, row.channel] = done
        for half in self._fronts:
            joined = [
                one for (batch, _), done in ends.items() if batch in (0, half) for one in done
            ]
            self._fronts[half] = joined or self._fronts[half]

    def _run(self, number: int, front: Sequence[Done], stream: int | str) -> list[Done]:
        """A row: what moves in, the computation, what follows it; what to wait for."""
        row, rank = self._text.rows[number], self._rank
        half = row.batch - 1 if row.batch else None
        with rank.on(layer=number, phase=self._phase, micro_batch=half):
            moved = [
                self._move(row, data, f"{row.name} load {what}", front)
                for data, what in ((row.input, "input"), (row.weight, "weight"))
                if data.is_moved
            ]
            with rank.on(stream=stream):
                done: Done = rank.compute(
                    row.name, op_type=_kind(row.name), duration_ns=row.compute_ns,
                    moved_bytes=sum(d.size_bytes for d in (row.input, row.weight, row.output)),
                    after=[*front, *moved],
                )  # fmt: skip
            if row.collective is not None and row.size_bytes:
                family = self._layout.family(row)
                if rank.size(family) > 1:
                    done = rank.collective(
                        row.collective, family, row.size_bytes,
                        name=f"{row.name} {row.collective.name.lower()}", after=done,
                        attributes={"involved_dim": row.involved} if row.involved else None,
                    )  # fmt: skip
            elif _is_sent(self._text, row):
                rank.send(
                    rank.peer(role=1), row.size_bytes, name=f"{row.name} keys and values",
                    after=done,
                )  # fmt: skip
            if row.output.is_moved:
                self._move(row, row.output, f"{row.name} store output", [done], store=True)
        return [done]

    def _cache(self, row: Row) -> Done:
        """Move keys and values from a slower memory, or to it."""
        store = row.name.startswith(CACHE[1])
        return self._move(row, row.weight, row.name, self._all(), store=store)

    def _move(
        self, row: Row, data: Data, name: str, after: Sequence[Done], *, store: bool = False
    ) -> Done:
        told: dict[str, Any] = {
            "tensor_loc": data.place.tier,
            "tensor_device": data.place.device,
        }
        if data.place.channel is not None:
            told["tensor_channel"] = data.place.channel
        move = self._rank.store if store else self._rank.load
        return move(name, data.size_bytes, after=list(after), attributes=told)

    def _place(self, number: int) -> int:
        """Which of the blocks of experts around a row is this rank's."""
        rows = self._text.rows
        first = last = number
        while first and rows[first - 1].expert is not None:
            first -= 1
        while last + 1 < len(rows) and rows[last + 1].expert is not None:
            last += 1
        blocks = sorted({row.expert or 0 for row in rows[first : last + 1]})
        grid = self._layout.workload.grid
        place, step = 0, 1
        for axis in grid.axes:
            if axis not in ("pp", "role"):
                place += step * self._rank.coordinate(axis)
                step *= grid.axes[axis]
        return blocks[place % len(blocks)]

    def _boundary(self, stage: int) -> int:
        """Bytes that go from the stage before to this one."""
        return self._text.rows[self._text.starts[stage] - 1].output.size_bytes

    def _front(self, row: Row) -> list[Done]:
        return self._fronts[row.batch] if row.batch else self._all()

    def _set(self, row: Row, done: list[Done]) -> None:
        for half in (row.batch,) if row.batch else (1, 2):
            self._fronts[half] = done

    def _all(self) -> list[Done]:
        return list(dict.fromkeys([*self._fronts[1], *self._fronts[2]]))


def _kind(name: str) -> str:
    """The layer's name without its number."""
    head, _, number = name.rpartition("_")
    return head if head and number.isdecimal() else name


class ServingSummary(Communicated):
    """What became of a text of LLMServingSim."""

    def __init__(self, layout: ServingLayout) -> None:
        super().__init__()
        self._layout = layout

    def as_dict(self) -> dict[str, Any]:
        """For JSON: `bytes` are those of a rank's input, as `comm_size` is."""
        text, grid = self._layout.text, self._layout.workload.grid
        return {
            "mode": text.mode.value,
            "dialect": "llmservingsim",
            "rows": len(text.rows) + len(text.cache),
            "stages": text.stages,
            "world_size": grid.world_size,
            "grid": grid.axes,
            "programs": self.programs,
            "left_out": [
                {"reason": r, "count": c} for r, c in serving_left_out(self._layout).items()
            ],
        }


def serving_left_out(layout: ServingLayout) -> dict[str, int]:
    """What is in the text and not in the graph, by reason."""
    text, found = layout.text, Counter[str]()
    for row in text.rows:
        if row.collective is None:
            found["bytes without a collective"] += row.size_bytes > 0 and not _is_sent(text, row)
        elif not row.size_bytes:
            found["collectives of 0 bytes"] += 1
        elif layout.workload.families[layout.family(row)].size == 1:
            found[f"collectives in groups of one rank ({layout.family(row)})"] += 1
    return {reason: count for reason, count in found.items() if count}
