"""What a process of a benchmark on several ranks does from its start to its end."""

# mypy: disable-error-code="import-not-found,no-untyped-call,attr-defined"

from __future__ import annotations

from pathlib import Path

from chakra_et.benchmark.comms.all_ranks import Part, program_of, saw
from chakra_et.benchmark.comms.call import BACKENDS, Plan, RankOutcome, Settings
from chakra_et.benchmark.comms.running import run_plan
from chakra_et.benchmark.comms.world import join, take_seat
from chakra_et.benchmark.running import Outcome, emit, rehearsed, timed
from chakra_et.benchmark.running import Settings as Whole
from chakra_et.files import read
from chakra_et.model import Trace


def run_rank(plan: Plan, settings: Settings) -> RankOutcome:
    """Join the ranks that run, and run a plan. Raises ChakraError as joining and running do."""
    import torch.distributed as dist

    seat = take_seat(settings.backend, settings.timeout_s)
    join(seat)
    try:
        return run_plan(seat, plan, settings)
    finally:
        dist.destroy_process_group()


def run_operators(
    path: str, part: Part, settings: Whole, program: Path | None = None
) -> tuple[Outcome, RankOutcome]:
    """Join the ranks that run, and run all operators of a trace, communication included.

    With `program`, the rank's own is written there instead, after its rehearsal.
    """
    import torch.distributed as dist

    join(take_seat(BACKENDS[settings.back_end.value], part.timeout_s))
    try:
        return operate(read(path), part, settings, program)
    finally:
        dist.destroy_process_group()


def operate(
    trace: Trace, part: Part, settings: Whole, path: Path | None = None
) -> tuple[Outcome, RankOutcome]:
    """Run all operators of a trace as one of the ranks that have joined, or write their program."""
    program, writer = program_of(trace, part, settings)
    if path is not None:
        outcome = emit(program, settings, path)
        return outcome, saw(part, {}, {}, outcome)
    execution = rehearsed(program, settings)
    outcome = timed(execution, settings)
    return outcome, saw(part, writer.nodes, execution.name("RANKS").took, outcome)
