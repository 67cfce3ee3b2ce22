"""Other buckets: the gradients of a recorded step summed in other parts."""

from __future__ import annotations

from collections import Counter

import numpy as np

from chakra_et.definitions import EdgeKind
from chakra_et.model import Trace, TraceSet
from chakra_et.times import callers
from chakra_et.whatif.chains import program_order
from chakra_et.whatif.edit import Change, MissedError
from chakra_et.whatif.recorded.filling import Filling, filling_of
from chakra_et.whatif.recorded.sums import GradientSum, steps_of, sums_of
from chakra_et.whatif.recorded.transfers import TransferLine, common_times, flat_shapes
from chakra_et.whatif.surgery import Surgery


def rebucketed(
    traces: TraceSet, text: str, cap: int, filling: Filling | None = None
) -> tuple[TraceSet, Change]:
    """The run with buckets of so many bytes (0: all in one), or filled as `filling` says.

    Raises MissedError where sums of gradients are not found on all ranks.
    """
    every = {rank: sums_of(trace, rank) for rank, trace in traces.items()}
    common = common_times(traces)
    points = [
        (sum(one.sizes), common[rank, one.row])
        for rank, sums in every.items() for one in sums if (rank, one.row) in common
    ]  # fmt: skip
    if not points:
        raise MissedError(
            "sums of gradients that all ranks take part in: give all ranks of the run"
        )
    line = TransferLine(points)
    provenance: Counter[str] = Counter()
    made, nodes, before, after = {}, 0, 0, 0
    for rank, trace in traces.items():
        change = _Rank(
            trace, every[rank], line, {r: ns for (k, r), ns in common.items() if k == rank}
        )
        had = filling_of(trace, every[rank])
        made[rank] = change.run(filling or Filling(cap, cap, had.reverse))
        provenance += change.provenance
        nodes, before, after = nodes + change.nodes, before + change.before, after + change.after
    first = next(iter(every.values()))
    told = (
        f"{len(first)} sums of {sum(len(one.gradients) for one in first)} gradients by what they "
        f"read; {filling_of(next(iter(traces.values())), first).told}",
    )
    return TraceSet(made), Change(text, nodes, before, after, "structure", provenance, told)


class _Rank:
    """The buckets of one rank: the old ones out, new ones in their places."""

    def __init__(
        self, trace: Trace, sums: list[GradientSum], line: TransferLine, common: dict[int, int]
    ) -> None:
        self.trace = trace
        self.sums = sums
        self.line = line
        self.common = common
        self.surgery = Surgery(trace)
        self._place_of = np.argsort(program_order(trace))
        self.provenance: Counter[str] = Counter()
        self.nodes = self.before = self.after = 0
        self._parent = callers(trace)
        self._called: set[int] = set()

    def run(self, filling: Filling) -> Trace:
        """The trace with buckets that are filled like this."""
        step = steps_of(self.trace, np.array([one.row for one in self.sums]))
        lanes = self._lanes()
        made: list[int] = []
        for number in np.unique(step).tolist():
            mine = [one for one, s in zip(self.sums, step.tolist(), strict=True) if s == number]
            made += self._step(mine, filling)
        if not self.nodes:
            return self.trace
        # As many workers as before take the sums in turn.
        for place, row in enumerate(made):
            if place >= lanes:
                self.surgery.wait(row, made[place - lanes], EdgeKind.PROGRAM)
        return self.surgery.finish()

    def _lanes(self) -> int:
        """How many workers sum at the same time."""
        rows = {one.row for one in self.sums}
        return sum(self.surgery.preceding(row) not in rows for row in rows)

    def _step(self, sums: list[GradientSum], filling: Filling) -> list[int]:
        """New sums of one step; those that were there where they carry the same."""
        filled = filling.turned(sums)
        gradients = [
            (g, size) for one in filled for g, size in zip(one.gradients, one.sizes, strict=True)
        ]
        readers = [reader for one in filled for reader in one.readers]
        parts = filling.parted([size for _, size in gradients])
        self.before += sum(int(self.trace.nodes.duration_ns[one.row]) for one in sums)
        if [len(part) for part in parts] == [len(one.gradients) for one in filled]:
            self.after += sum(int(self.trace.nodes.duration_ns[one.row]) for one in sums)
            self.provenance["recorded"] += len(sums)
            return [one.row for one in sums]
        asked = filling.turned(parts)
        waits, made, last = self._waits(sums), [], gradients[asked[0][0]][0]
        for place, part in enumerate(asked):
            # Sums are asked for in their order: none before the gradients of those before it.
            last = max((last, *(gradients[i][0] for i in part)), key=self._order)
            row = self._sum(sums[min(place, len(sums) - 1)], [gradients[i] for i in part],
                            sorted({row for i in part for row in readers[i]}), last)  # fmt: skip
            made.append(row)
        self._wait(filled, asked, made, waits)
        self.surgery.drop([row for one in sums for row in (one.row, one.call)])
        return made

    def _sum(
        self, like: GradientSum, carried: list[tuple[int, int]], readers: list[int], gradient: int
    ) -> int:
        """A sum of some gradients, asked for where `gradient` is there."""
        surgery, size = self.surgery, sum(size for _, size in carried)
        call, row = surgery.copies(np.array([like.call, like.row])).tolist()
        last, holder = self._place(gradient, like)
        surgery.put(np.array([call]), last)
        self._called.add(call)
        if holder >= 0:
            surgery.wait(call, holder, EdgeKind.CALL)
        rows = np.array([gradient for gradient, _ in carried])
        for reader in (call, row):
            surgery.wait(np.full(len(rows), reader), rows, EdgeKind.DATA)
        surgery.wait(row, call, self._asks(like))
        if readers:
            surgery.wait(np.array(readers), np.full(len(readers), row), EdgeKind.DATA)
        ns, source = self.line.time_ns(size)
        own = int(self.trace.nodes.duration_ns[like.row])
        took = max(own - self.common.get(like.row, own), 0) + ns
        surgery.takes(row, took)
        surgery.tell("comm_size", row, size)
        nodes, before = self.trace.nodes, sum(like.sizes)
        for new, old in ((row, like.row), (call, like.call)):
            code = int(nodes.input_code[old])
            text = nodes.texts[code][1] if code >= 0 else b""
            surgery.shapes(new, flat_shapes(text, before, size))
        self.nodes, self.after = self.nodes + 1, self.after + took
        self.provenance[source] += 1
        return int(row)

    def _asks(self, like: GradientSum) -> EdgeKind:
        into = self.surgery.into(like.row)
        kinds = self.surgery.kind[into[self.surgery.source[into] == like.call]]
        return EdgeKind(int(kinds[kinds != EdgeKind.DATA][0]))

    def _place(self, gradient: int, like: GradientSum) -> tuple[int, int]:
        """Behind which node a call goes that needs a gradient, and who calls it.

        As the old call was made by what accumulates its last gradient, so is the new one.
        """
        wanted = self._parent[like.call]
        name = int(self.trace.nodes.name_code[wanted]) if wanted >= 0 else -1
        holder = gradient
        while holder >= 0 and self.trace.nodes.name_code[holder] != name:
            holder = int(self._parent[holder])
        calls = {one.call for one in self.sums}
        last, after = gradient, self.surgery.following(gradient)
        passed = calls | self._called
        while after is not None and (after in passed or self._within(after, holder)):
            last = last if after in calls else after
            after = self.surgery.following(after)
        return last, holder

    def _within(self, row: int, holder: int) -> bool:
        while row >= 0 and row != holder:
            row = int(self._parent[row]) if row < len(self._parent) else -1
        return bool(row == holder and holder >= 0)

    def _waits(self, sums: list[GradientSum]) -> dict[int, int]:
        """Which node first needs the outcome of each old sum: what waits, else what copies it."""
        found = {}
        for one in sums:
            if one.copies:
                found[one.row] = self._group_start(min(one.copies, key=self._order))
            else:
                edges = self.surgery.source == one.row
                waiting = self.surgery.target[edges & (self.surgery.kind == EdgeKind.SYNC)]
                if len(waiting):
                    found[one.row] = int(waiting[0])
        if not found and not any(rows for one in sums for rows in one.readers):
            raise MissedError("what waits for the sums of gradients: nothing reads them")
        return found

    def _order(self, row: int) -> int:
        return int(self._place_of[row])

    def _caller_or_itself(self, row: int) -> int:
        return int(self._parent[row]) if self._parent[row] >= 0 else row

    def _group_start(self, reader: int) -> int:
        """The first node of those that lead to a reader and no other sum: views of the bucket."""
        first = self._caller_or_itself(reader)
        names = self.trace.nodes.name_code
        before = self.surgery.preceding(first)
        name = names[before] if before is not None else -1
        while (
            before is not None
            and names[before] == name
            and self._parent[before] == self._parent[first]
        ):
            first = before
            before = self.surgery.preceding(first)
        return first

    def _wait(
        self,
        sums: list[GradientSum],
        parts: list[list[int]],
        made: list[int],
        waits: dict[int, int],
    ) -> None:
        """Let what needs the first gradient of a new sum wait for it; readers of buckets do."""
        old = np.isin(self.surgery.source, [one.row for one in sums])
        self.surgery.forget(np.flatnonzero(old & (self.surgery.kind == EdgeKind.SYNC)))
        begins = np.cumsum([0] + [len(one.gradients) for one in sums])
        for row, part in zip(made, parts, strict=True):
            one = sums[int(np.searchsorted(begins, part[0], "right")) - 1]
            place = part[0] - int(begins[sums.index(one)])
            if one.copies and place:
                first = self._caller_or_itself(one.copies[place])
                self.surgery.wait(first, row, EdgeKind.SYNC, inferred=True)
            elif one.row in waits:
                self.surgery.wait(waits[one.row], row, EdgeKind.SYNC, inferred=True)
