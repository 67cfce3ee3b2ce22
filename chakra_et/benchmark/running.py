"""From a trace to figures: plan, program, rehearsal, iterations, and a recording of the run."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from chakra_et.benchmark.account import Account, account_of
from chakra_et.benchmark.certificate import Certificate, certificate
from chakra_et.benchmark.choices import BackEnd
from chakra_et.benchmark.kernels import KernelWriter
from chakra_et.benchmark.plan import Choice, plan_of
from chakra_et.benchmark.program import Program, Style
from chakra_et.benchmark.torch_release import (
    expect_device,
    expect_memory,
    has_overload,
    import_modules,
    registered_by,
    release,
)
from chakra_et.benchmark.writer import OperatorWriter, Writer
from chakra_et.collection.converting import convert_recording
from chakra_et.io.output import atomic_output
from chakra_et.linker.window.cut import Window
from chakra_et.model import Trace

if TYPE_CHECKING:
    from chakra_et.benchmark.execution import Execution


Step: TypeAlias = Callable[[int, int], None]
"""Takes how many iterations are done, of how many."""


@dataclass(frozen=True)
class Settings:
    """How a recording is run."""

    back_end: BackEnd = BackEnd.CPU
    window: Window | None = None
    """The part of the recording that runs; None for all of it."""
    modules: tuple[str, ...] = ()
    """Modules that register operators."""
    kernels: Path | None = None
    """The directory of the sources of generated kernels."""
    style: Style = field(default_factory=Style)
    warmup: int = 3
    iterations: int = 10
    seed: int = 0
    threads: int | None = None
    """Threads of one operator; None takes the recorded number, within PyTorch's own."""
    record: Path | None = None
    """Where a recording of the run goes."""


@dataclass
class Outcome:
    """What came of a run; a dry one has no spans."""

    account: Account
    back_end: str
    torch: str | None = None
    threads: int | None = None
    """The threads that one operator had."""
    recorded_threads: int | None = None
    """Those that it had in the recording; None where that does not say."""
    spans_ns: list[int] = field(default_factory=list)
    """What each iteration took."""
    changed: list[str] = field(default_factory=list)
    """What the rehearsal changed."""
    certificate: Certificate | None = None
    """The recording of the run beside the recording that it was made from."""

    @property
    def span_ns(self) -> int:
        """The median of what iterations took."""
        return int(statistics.median(self.spans_ns)) if self.spans_ns else 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "back_end": self.back_end,
            "torch": self.torch,
            "threads": self.threads,
            "recorded_threads": self.recorded_threads,
            **self.account.as_dict(),
            "span_ns": self.spans_ns,
            "median_span_ns": self.span_ns if self.spans_ns else None,
            "changed": self.changed,
            "certificate": None if self.certificate is None else self.certificate.as_dict(),
        }


def prepare(trace: Trace, settings: Settings, writers: Sequence[Writer] = ()) -> Program:
    """The program of a trace. Raises ChakraError where there is nothing to run.

    `writers` write what is no ordinary operator: communication, say. A dry program asks no PyTorch.
    """
    at_hand = settings.back_end is not BackEnd.DRY
    if at_hand:
        expect_device(settings.back_end.value)
        import_modules(settings.modules)
    choice = Choice(settings.window, registered_by(settings.modules, at_hand))
    on_host = settings.back_end is not BackEnd.CUDA
    operators = OperatorWriter(
        settings.modules,
        on_host=on_host,
        present=has_overload if at_hand else None,
    )
    kernels = KernelWriter(settings.kernels, on_host)
    style = replace(settings.style, streams=not on_host)
    return Program(plan_of(trace, choice), [operators, kernels, *writers], style)


def _silent(_done: int, _of: int) -> None:
    """Tell nobody."""


def run(program: Program, settings: Settings, step: Step = _silent) -> Outcome:
    """Run a program as the settings say; `step` hears of each iteration, the rehearsal first.

    Raises ChakraError where its tensors do not fit.
    """
    if settings.back_end is BackEnd.DRY:
        return Outcome(account_of(program.plan), BackEnd.DRY.value)
    step(0, _iterations(settings))
    outcome = timed(rehearsed(program, settings), settings, step)
    if settings.record is not None:
        again = convert_recording(settings.record, force=True)
        recorded = program.plan.trace
        outcome.certificate = certificate(recorded, again[0].load(), Choice(settings.window))
    return outcome


def _iterations(settings: Settings) -> int:
    """All of a run, with the rehearsal."""
    return 1 + settings.warmup + settings.iterations


def timed(execution: Execution, settings: Settings, step: Step = _silent) -> Outcome:
    """What the iterations of a program took, which are recorded afterwards where that is asked."""
    spans = []
    for done in range(1, _iterations(settings)):
        step(done, _iterations(settings))
        spans.append(execution.iterate())
    outcome = _outcome(execution, settings, spans[settings.warmup :])
    if settings.record is not None:
        execution.record(settings.record, settings.iterations)
    return outcome


def emit(program: Program, settings: Settings, path: Path) -> Outcome:
    """Write a program to a file, and do not run it; but for a dry one, it is rehearsed first."""
    if settings.back_end is BackEnd.DRY:
        outcome = Outcome(account_of(program.plan), BackEnd.DRY.value)
    else:
        outcome = _outcome(rehearsed(program, settings), settings, [])
    with atomic_output(path) as file:
        file.write(program.text().encode())
    return outcome


def rehearsed(program: Program, settings: Settings) -> Execution:
    """A program with its tensors, after a first run that tried each operation.

    Raises ChakraError where its tensors do not fit.
    """
    from chakra_et.benchmark.execution import Execution

    device = settings.back_end.value
    expect_memory(program.plan.peak_bytes, device)
    execution = Execution(program, device, settings.seed, settings.threads)
    execution.rehearse()
    return execution


def _outcome(execution: Execution, settings: Settings, spans: list[int]) -> Outcome:
    program = execution.program
    return Outcome(
        account_of(program.plan),
        settings.back_end.value,
        release(),
        execution.threads,
        program.recorded_threads,
        spans,
        execution.changes(),
    )
