"""What a process of a benchmark on several ranks does from its start to its end."""

# mypy: disable-error-code="import-not-found,no-untyped-call,attr-defined"

from __future__ import annotations

from chakra_et.benchmark.comms.all_ranks import Part, saw
from chakra_et.benchmark.comms.call import BACKENDS, Plan, RankOutcome, Settings
from chakra_et.benchmark.comms.running import run_plan
from chakra_et.benchmark.comms.world import join, take_seat
from chakra_et.benchmark.comms.writer import CommunicationWriter, wait_where_needed
from chakra_et.benchmark.running import Outcome, prepare, rehearsed, timed
from chakra_et.benchmark.running import Settings as Whole
from chakra_et.benchmark.torch_release import has_overload
from chakra_et.files import read


def run_rank(plan: Plan, settings: Settings) -> RankOutcome:
    """Join the ranks that run, and run a plan. Raises ChakraError as joining and running do."""
    import torch.distributed as dist

    seat = take_seat(settings.backend, settings.timeout_s)
    join(seat)
    try:
        return run_plan(seat, plan, settings)
    finally:
        dist.destroy_process_group()


def run_operators(path: str, part: Part, settings: Whole) -> tuple[Outcome, RankOutcome]:
    """Join the ranks that run, and run all operators of a trace, communication included."""
    import torch.distributed as dist

    seat = take_seat(BACKENDS[settings.back_end.value], part.timeout_s)
    join(seat)
    writer = CommunicationWriter(
        {call.node: call for call in part.recorded},
        {call.node: call for call in part.calls},
        part.members,
        part.process,
        part.timeout_s,
        has_overload,
    )
    try:
        program = prepare(read(path), settings, [writer])
        wait_where_needed(program)
        execution = rehearsed(program, settings)
        outcome = timed(execution, settings)
        took = execution.name("RANKS").took
        return outcome, saw(part, writer.nodes, took, outcome)
    finally:
        dist.destroy_process_group()
