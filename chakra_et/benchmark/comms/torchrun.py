"""A benchmark whose ranks somebody else has started: torchrun, or a job of a cluster.

For communication alone, the first rank reads the traces, and gives the others their parts.
"""

# mypy: disable-error-code="import-not-found,no-untyped-call,attr-defined"

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

import msgspec

from chakra_et.benchmark.comms.all_ranks import AllRanks, collected, parts_of
from chakra_et.benchmark.comms.call import BACKENDS, Plan, RankOutcome, Settings
from chakra_et.benchmark.comms.figures import Figures
from chakra_et.benchmark.comms.job import Job
from chakra_et.benchmark.comms.rank import operate
from chakra_et.benchmark.comms.running import run_plan
from chakra_et.benchmark.comms.world import Seat, join, take_seat
from chakra_et.benchmark.running import Outcome
from chakra_et.benchmark.running import Settings as Whole
from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet

_READING: Final = timedelta(minutes=10)
"""How long the first rank may take to read all traces."""
_REFUSED: Final = b"refused"


def run_as_rank(prepare: Callable[[], Job], settings: Settings) -> Figures | None:
    """Run this process's part; the first rank gets the figures, the others None.

    `prepare` makes the job, on the first rank alone. Raises ChakraError there as it does, and
    SystemExit on the others.
    """
    import torch.distributed as dist

    seat = take_seat(settings.backend, settings.timeout_s)
    job = _hand_out(seat, prepare) if seat.rank == 0 else None
    plan = _own_plan(seat)
    join(seat)
    try:
        outcome = run_plan(seat, plan, settings)
        seat.store.set(f"outcome/{seat.rank}", msgspec.json.encode(outcome))
        return None if job is None else job.figures(_outcomes(seat))
    finally:
        dist.destroy_process_group()


def _hand_out(seat: Seat, prepare: Callable[[], Job]) -> Job:
    """Make the job, and leave each rank its part."""
    try:
        job = prepare()
        _expect_as_many(seat, job)
    except BaseException:
        for rank in range(seat.world_size):
            seat.store.set(f"plan/{rank}", _REFUSED)
        raise
    for rank, plan in enumerate(job.plans):
        seat.store.set(f"plan/{rank}", msgspec.json.encode(plan))
    return job


def _expect_as_many(seat: Seat, job: Job) -> None:
    if len(job.plans) != seat.world_size:
        raise ChakraError(
            f"{seat.world_size} ranks were started for the traces of {len(job.plans)}",
            remedy=f"Start {len(job.plans)}, or give --shrink {seat.world_size}.",
        )


def _own_plan(seat: Seat) -> Plan:
    key = f"plan/{seat.rank}"
    try:
        seat.store.wait([key], _READING)
    except RuntimeError:
        raise ChakraError(
            f"rank {seat.rank}: the first rank has not read the traces within {_READING}",
            remedy="Convert them first: chakra convert DIR -o OUT.",
        ) from None
    told = seat.store.get(key)
    if told == _REFUSED:
        raise SystemExit(2)  # The first rank says why.
    return msgspec.json.decode(told, type=Plan)


def _outcomes(seat: Seat) -> list[RankOutcome]:
    keys = [f"outcome/{rank}" for rank in range(seat.world_size)]
    try:
        seat.store.wait(keys, seat.timeout)
    except RuntimeError:
        absent = [rank for rank, key in enumerate(keys) if not seat.store.check([key])]
        raise ChakraError(f"no result of rank {', '.join(map(str, absent))}") from None
    return [msgspec.json.decode(seat.store.get(key), type=RankOutcome) for key in keys]


def run_all_as_rank(
    traces: TraceSet, job: Job, settings: Whole, timeout_s: float
) -> AllRanks | None:
    """Run this process's rank with all its operators; the first one gets what came of all."""
    import torch.distributed as dist

    seat = take_seat(BACKENDS[settings.back_end.value], timeout_s)
    _expect_as_many(seat, job)
    join(seat)
    try:
        part = parts_of(job, timeout_s)[seat.rank]
        own = operate(traces[part.rank], part, settings)
        every: list[tuple[Outcome, RankOutcome]] = [own] * seat.world_size
        dist.all_gather_object(every, own)
    finally:
        dist.destroy_process_group()
    return None if seat.rank else collected(traces, job, settings, every)
