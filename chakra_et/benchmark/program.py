"""The program of a plan, statement by statement, and its text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from chakra_et.benchmark.arguments import WIDTHS, View
from chakra_et.benchmark.choices import StandIn
from chakra_et.benchmark.demands import fills
from chakra_et.benchmark.fill import Fill
from chakra_et.benchmark.plan import Operation, Plan
from chakra_et.benchmark.streams import stream_statements
from chakra_et.benchmark.threads import recorded_threads
from chakra_et.benchmark.unwritten import filled_outside
from chakra_et.benchmark.views import AT_START, refs
from chakra_et.benchmark.writer import Writer
from chakra_et.shown import number_of, shown
from chakra_et.version import __version__

_RUNTIME: Final = Path(__file__).with_name("runtime.py")
_PART: Final = 200
"""Operations in one function of the program: a reader can find them, and Python compiles them."""
_NOTHING: Final = Fill("none")


@dataclass
class Step:
    """The statements of one operation: tensors that it needs, itself, and what ends with it."""

    before: list[str] = field(default_factory=list)
    run: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """All of them, in order."""
        return [*self.before, *self.run, *self.after]


@dataclass(frozen=True)
class Style:
    """How operations that do not run, and the time between operations, are replaced."""

    stand_in: StandIn = StandIn.SKIP
    gaps: bool = False
    """Whether the program waits between operations as the recording did."""
    streams: bool = False
    """Whether the program launches on the streams of the recording."""


class Program:
    """Statements that run a plan. `t[n]` in them is the tensor of view n.

    Operations that no writer takes get its reason in the plan.
    """

    def __init__(self, plan: Plan, writers: Sequence[Writer], style: Style = Style()) -> None:
        self.plan = plan
        self.style = style
        self.writers = tuple(writers)
        self.fills = fills(plan)
        self.recorded_threads = recorded_threads(plan.trace)
        self.start: list[str] = []
        self.steps: list[Step] = []
        self._defined: set[int] = set()
        """Views that are tensors at the place up to which the program is written."""
        self._at_start: set[int] = set()
        """Those of them that are there before the first operation."""
        self._ending = _ending(plan)
        self._last_read = _last_reads(plan)
        self._unwritten = filled_outside(plan)
        for number in range(len(plan.operations)):
            self.steps.append(self._step(number))
        for number, lines in stream_statements(plan).items() if style.streams else ():
            self.steps[number].before[:0] = lines

    def skip(self, number: int, reason: str) -> None:
        """Let an operation not run; what it would return is made in its place."""
        operation = self.plan.operations[number]
        operation.reason = reason
        taken = {self.plan.views[view].storage: view for view in refs(operation.inputs)}
        self.steps[number].run = self._instead(operation, number, taken)

    def refill(self, number: int, view: int, fill: Fill) -> None:
        """Give an operation a tensor of its own with values that it needs."""
        self.steps[number].before.append(f"t[{view}] = {made(self.plan, view, fill)}")

    def restore(self, number: int, view: int) -> None:
        """Have a tensor with the recorded shape where an operation returns another one."""
        fill = self.fills[self.plan.views[view].storage]
        self.steps[number].run.append(f"t[{view}] = {made(self.plan, view, fill)}")

    def _step(self, number: int) -> Step:
        operation = self.plan.operations[number]
        step = Step()
        if self.style.gaps and operation.gap_ns:
            step.before.append(f"wait({operation.gap_ns})")
        writer = self._writer(operation)
        if writer is None:
            step.run = self._instead(operation, number, {})
        else:
            for view in dict.fromkeys(refs(operation.inputs)):
                self._define(view, step)
            step.run = writer.statements(self.plan, number)
            step.run += [self._filled(view) for view in self._unwritten.get(number, ())]
        self._after(number, step)
        return step

    def _define(self, view: int, step: Step) -> None:
        """Have a tensor that no operation has returned as it is."""
        if view in self._defined:
            return
        seen = self.plan.views[view]
        storage = self.plan.storages[seen.storage]
        at_start = storage.born == AT_START
        there = self._at_start if at_start else self._defined
        base = next((other for other in storage.views if other in there), None)
        if base is None:
            tensor = made(self.plan, view, self.fills[seen.storage])
        else:
            tensor = _view(seen, f"t[{base}]")
        lines = self.start if at_start else step.before
        lines.append(f"t[{view}] = {tensor}")
        self._defined.add(view)
        if at_start:
            self._at_start.add(view)

    def _writer(self, operation: Operation) -> Writer | None:
        """Who writes an operation; nobody where it does not run, and then it has a reason."""
        writer = next((w for w in self.writers if operation.kind in w.kinds), None)
        if writer is not None:
            operation.reason = writer.refuses(self.plan, operation)
        return None if operation.reason else writer

    def _filled(self, view: int) -> str:
        return f"filled(t[{view}], {_values(self.fills[self.plan.views[view].storage])})"

    def _instead(self, operation: Operation, number: int, taken: dict[int, int]) -> list[str]:
        """What stands for an operation that does not run: time, and what it would return.

        `taken` has a view for storages of its inputs that are there: of these it returns others.
        """
        lines = [f"# {shown(operation.name)} is left out: {shown(operation.reason)}"]
        if self.style.stand_in is not StandIn.SKIP and operation.duration_ns:
            lines.append(f"{self.style.stand_in.value}({operation.duration_ns})")
        there = dict(taken)
        for view in dict.fromkeys(refs(operation.outputs)):
            seen = self.plan.views[view]
            new = self.plan.storages[seen.storage].born == number and seen.dtype in WIDTHS
            if seen.storage in there:
                lines.append(f"t[{view}] = {_view(seen, f't[{there[seen.storage]}]')}")
            elif new:
                lines.append(f"t[{view}] = {made(self.plan, view, self._made_up(seen.storage))}")
                there[seen.storage] = view
        return lines

    def _made_up(self, storage: int) -> Fill:
        """Values of what an operation would have returned: only integers must be sound."""
        fill = self.fills[storage]
        return fill if fill.whole else _NOTHING

    def _after(self, number: int, step: Step) -> None:
        """Note what the operation has returned, and let go of what nobody needs any more."""
        operation = self.plan.operations[number]
        taken = set(refs(operation.inputs))
        returned = [view for view in dict.fromkeys(refs(operation.outputs)) if view not in taken]
        assigned = "\n".join(step.run)
        self._defined.update(view for view in returned if f"t[{view}]" in assigned)
        gone = [v for s in self._ending[number] for v in self.plan.storages[s].views]
        if operation.reason == "" and not any(self._is_needed(v, number) for v in returned):
            step.run = [_call_alone(line, returned) for line in step.run]
            self._defined.difference_update(returned)
        gone = [view for view in gone if view in self._defined]
        if gone:
            step.after.append("".join(f"t[{view}] = " for view in gone) + "None")
        self._defined.difference_update(gone)

    def _is_needed(self, view: int, number: int) -> bool:
        storage = self.plan.storages[self.plan.views[view].storage]
        born_here = storage.born == number and storage.last > number
        return born_here or self._last_read.get(view, -1) > number

    def text(self) -> str:
        """The program: a file of its own, which needs PyTorch alone."""
        parts = [self.steps[at : at + _PART] for at in range(0, len(self.steps), _PART)]
        names = ", ".join(f"part_{place}" for place in range(len(parts)))
        prelude = [line for writer in self.writers for line in writer.prelude()]
        lines = [
            f'"""{self._about()}\n\nIt needs PyTorch alone. Options: --help.\n"""\n',
            _RUNTIME.read_text(encoding="utf-8").partition('"""\n\n')[2],
            *prelude,
            "",
            "",
            *_function(
                "start()", [f"t = [None] * {len(self.plan.views)}", *self.start, "return t"]
            ),
        ]
        for place, steps in enumerate(parts):
            lines += _function(f"part_{place}(t)", (line for step in steps for line in step.lines))
        lines += [f"PARTS = ({names},)", "", "", 'if __name__ == "__main__":']
        lines += [f"    main(start, PARTS, {self.recorded_threads})", ""]
        return "\n".join(lines)

    def _about(self) -> str:
        runs = sum(not operation.reason for operation in self.plan.operations)
        out = len(self.plan.operations) - runs
        return (
            f"Runs the work of a recording: {number_of(runs, 'operation')}, {out} left out.\n\n"
            f"Made by chakra-et {__version__} with `chakra run --emit`."
        )


def made(plan: Plan, view: int, fill: Fill) -> str:
    """An expression for a view in memory of its own."""
    seen = plan.views[view]
    size = plan.storages[seen.storage].bytes
    memory = f"storage({size}, {seen.dtype!r}, {seen.device!r}, {_values(fill)})"
    return _view(seen, memory)


def _view(seen: View, memory: str) -> str:
    return f"view({memory}, {seen.dtype!r}, {seen.shape}, {seen.strides}, {seen.offset})"


def _values(fill: Fill) -> str:
    ends = f", {fill.low}, {fill.high}" if fill.low or fill.high else ""
    return f"{fill.kind!r}{ends}"


def _call_alone(line: str, returned: list[int]) -> str:
    """A statement without the assignment of tensors that nobody reads."""
    target, equals, call = line.partition(" = ")
    alone = equals and all(f"t[{view}]" in target for view in returned) and "(" not in target
    return call if alone else line


def _function(head: str, lines: Iterable[str]) -> list[str]:
    body = [f"    {line}" for line in lines] or ["    pass"]
    if all(line.lstrip().startswith("#") for line in body):
        body.append("    pass")
    return [f"def {head}:", *body, "", ""]


def _ending(plan: Plan) -> list[list[int]]:
    """For each operation the storages that nobody names after it."""
    ending: list[list[int]] = [[] for _ in plan.operations]
    for place, storage in enumerate(plan.storages):
        if storage.born != AT_START:
            ending[storage.last].append(place)
    return ending


def _last_reads(plan: Plan) -> dict[int, int]:
    """For each view the last operation that takes it."""
    return {
        view: number
        for number, operation in enumerate(plan.operations)
        for view in refs(operation.inputs)
    }
