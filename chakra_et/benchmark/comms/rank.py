"""What a process of a communication benchmark does from its start to its end."""

# mypy: disable-error-code="import-not-found,no-untyped-call,attr-defined"

from __future__ import annotations

from chakra_et.benchmark.comms.call import Plan, RankOutcome, Settings
from chakra_et.benchmark.comms.running import run_plan
from chakra_et.benchmark.comms.world import join, take_seat


def run_rank(plan: Plan, settings: Settings) -> RankOutcome:
    """Join the ranks that run, and run a plan. Raises ChakraError as joining and running do."""
    import torch.distributed as dist

    seat = take_seat(settings.backend, settings.timeout_s)
    join(seat)
    try:
        return run_plan(seat, plan, settings)
    finally:
        dist.destroy_process_group()
