"""Running a program with PyTorch: a rehearsal, in which each operation is tried, and iterations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from chakra_et.benchmark.arguments import WIDTHS, View
from chakra_et.benchmark.demands import demands
from chakra_et.benchmark.fill import Fill
from chakra_et.benchmark.program import Program
from chakra_et.benchmark.views import refs
from chakra_et.shown import shown

_FILE: Final = "<benchmark>"


class Execution:
    """A program in memory, with its tensors.

    The first iteration is a rehearsal: it tries each operation for itself, and changes the program
    where PyTorch refuses one, returns another shape or type, or would read beyond a table.
    """

    def __init__(
        self, program: Program, device: str = "cpu", seed: int = 0, threads: int | None = None
    ) -> None:
        self.program = program
        self._device = device
        self._names: dict[str, Any] = {"__name__": _FILE}
        self._load()
        self._names["set_up"](device, seed, threads, program.recorded_threads)
        self._no_grad = self._names["torch"].no_grad
        self.tensors: list[Any] = [None] * len(program.plan.views)
        self._lacks = self._make(program.start) is not None
        self.changed: list[tuple[int, str]] = []
        """Operations for which the rehearsal changed the program, and why."""

    def rehearse(self) -> None:
        """Run every operation once, and let the program be as PyTorch wants it."""
        for number, step in enumerate(self.program.steps):
            refused = self._make(step.before) or self._lacking(number)
            if refused is None:
                self._satisfy(number)
                self._try(number)
            else:
                self._give_up(number, refused)
            self._restore(number)
            self._run(step.after)
        self._names["synchronize"]()
        if self.changed:
            self._load()

    def _load(self) -> None:
        """Execute the text of the program: its names are there, and nothing has run."""
        exec(compile(self.program.text(), _FILE, "exec"), self._names)
        self._names["DEVICE"] = self._device

    def iterate(self) -> int:
        """Run the program once; what it took in ns."""
        took: int = self._names["iterate"](self._names["PARTS"], self.tensors)
        return took

    @property
    def threads(self) -> int:
        """The threads that one operator has."""
        return int(self._names["torch"].get_num_threads())

    def record(self, directory: Path, iterations: int) -> None:
        """Record iterations as `chakra collect` does, each as a step."""
        from chakra_et.collection import collect

        with collect(directory, steps=iterations, warmup=1, quiet=True) as recording:
            for _ in range(iterations + 2):
                self.iterate()
                recording.step()

    def name(self, name: str) -> Any:
        """What a name of the program stands for."""
        return self._names[name]

    def changes(self) -> list[str]:
        """What the rehearsal changed: each operator and why, with how often."""
        operations = self.program.plan.operations
        found = Counter((operations[number].name, why) for number, why in self.changed)
        return [f"{name} ({count}): {why}" for (name, why), count in found.items()]

    def _run(self, lines: list[str]) -> None:
        with self._no_grad():
            exec(compile("\n".join(lines), _FILE, "exec"), self._names, {"t": self.tensors})

    def _satisfy(self, number: int) -> None:
        """Give the operation other tensors where it would read beyond a table, say."""
        operation = self.program.plan.operations[number]
        if operation.reason:
            return
        for view, fill in demands(operation, self.program.plan.views):
            if not _holds(self.tensors[view], fill):
                self.program.refill(number, view, fill)
                self._make(self.program.steps[number].before, -1)
                self.changed.append((number, "its computed values do not fit, so others were made"))

    def _make(self, lines: list[str], first: int = 0) -> Exception | None:
        """Run lines one by one, from `first`; those that PyTorch refuses make way for a remark."""
        refused = None
        for place in range(len(lines))[first:]:
            try:
                self._run([lines[place]])
            except Exception as error:
                refused = error
                lines[place] = f"# PyTorch refused it: {shown(_first_line(error))}"
        return refused

    def _lacking(self, number: int) -> Exception | None:
        """What to say where an operation is to take a tensor that could not be made."""
        operation = self.program.plan.operations[number]
        lacks = self._lacks and not operation.reason
        missing = lacks and any(self.tensors[view] is None for view in refs(operation.inputs))
        return RuntimeError("a tensor that it takes cannot be made") if missing else None

    def _try(self, number: int) -> None:
        try:
            self._run(self.program.steps[number].run)
        except Exception as error:
            self._again(number, error)

    def _again(self, number: int, error: Exception) -> None:
        """Try an operation with the values that it demands, where it refuses computed ones."""
        operation = self.program.plan.operations[number]
        found = demands(operation, self.program.plan.views)
        if not found:
            self._give_up(number, error)
            return
        for view, fill in found:
            self.program.refill(number, view, fill)
            self._make(self.program.steps[number].before, -1)
        try:
            self._run(self.program.steps[number].run)
        except Exception:
            self._give_up(number, error)
        else:
            self.changed.append((number, f"PyTorch refused its values: {_first_line(error)}"))

    def _give_up(self, number: int, error: Exception) -> None:
        reason = f"PyTorch refused it: {_first_line(error)}"
        self.program.skip(number, reason)
        self.changed.append((number, reason))
        self._make(self.program.steps[number].run)

    def _restore(self, number: int) -> None:
        """Go on with a tensor as recorded where an operation returned one of another kind."""
        for view in self._returned(number):
            other = _difference(self.tensors[view], self.program.plan.views[view])
            if other:
                self.program.restore(number, view)
                self._make(self.program.steps[number].run, -1)
                self.changed.append((number, f"it returned {other}"))

    def _returned(self, number: int) -> Iterator[int]:
        operation = self.program.plan.operations[number]
        taken = set(refs(operation.inputs))
        assigned = " ".join(self.program.steps[number].run)
        for view in dict.fromkeys(refs(operation.outputs)):
            if view not in taken and f"t[{view}]" in assigned:
                yield view


def _difference(tensor: Any, seen: View) -> str:
    """What was returned in place of what was recorded; nothing to say where it is the same.

    The type differs where a recorded tensor without dimensions was a number of Python: numbers do
    not decide of which type a result is, and no recording tells them from tensors.
    """
    if tensor is None:
        return "nothing where a tensor was recorded"
    if tuple(tensor.shape) != seen.shape:
        return "another shape than recorded"
    if seen.dtype in WIDTHS and str(tensor.dtype) != f"torch.{seen.dtype}":
        return "another type than recorded"
    return ""


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def _holds(tensor: Any, fill: Fill) -> bool:
    """Whether a tensor has the values that are demanded."""
    if tensor is None or tensor.numel() == 0 or tensor.device.type == "meta":
        return True
    if fill.kind == "some":
        return int(tensor.count_nonzero()) == fill.low
    if fill.kind == "lengths":
        return int(tensor.sum()) == fill.high and int(tensor.max()) == (fill.low or tensor.max())
    if fill.kind in ("range", "offsets") and not tensor.dtype.is_floating_point:
        low, high = int(tensor.min()), int(tensor.max())
        return fill.low <= low and high < fill.high + (fill.kind == "offsets")
    return True
