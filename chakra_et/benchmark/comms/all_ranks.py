"""All operators of all ranks: each rank's trace in a process of its own, communication included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from chakra_et.benchmark.certificate import certificate
from chakra_et.benchmark.choices import BackEnd
from chakra_et.benchmark.comms.call import BACKENDS, Call, Group, RankOutcome
from chakra_et.benchmark.comms.figures import Figures
from chakra_et.benchmark.comms.job import Job
from chakra_et.benchmark.comms.writer import CommunicationWriter, wait_where_needed
from chakra_et.benchmark.launcher import launch
from chakra_et.benchmark.plan import Choice
from chakra_et.benchmark.program import Program
from chakra_et.benchmark.running import Outcome, Settings, prepare, run
from chakra_et.benchmark.torch_release import has_overload
from chakra_et.files import write
from chakra_et.model import Trace, TraceSet


@dataclass(frozen=True)
class Part:
    """What one process is told."""

    rank: int
    """The rank of the recording that it runs."""
    recorded: list[Call]
    calls: list[Call]
    members: dict[Group, tuple[int, ...]]
    """The processes of each group, in one order for all ranks."""
    process: dict[int, int]
    """The process that runs each rank of the recording."""
    timeout_s: float


@dataclass
class AllRanks:
    """What came of all ranks."""

    outcomes: dict[int, Outcome]
    """By rank of the recording."""
    communication: Figures

    @property
    def spans_ns(self) -> list[int]:
        """The longest of all ranks, for each iteration."""
        every = [outcome.spans_ns for outcome in self.outcomes.values()]
        return [max(spans) for spans in zip(*every, strict=True)]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "span_ns": self.spans_ns,
            "ranks": {str(rank): outcome.as_dict() for rank, outcome in self.outcomes.items()},
            "communication": self.communication.as_dict(),
        }


def run_all_ranks(
    traces: TraceSet, job: Job, settings: Settings, timeout_s: float, emit: Path | None = None
) -> AllRanks:
    """Run every rank of a job. Raises ChakraError where one fails, or does not come in time.

    With `emit`, the ranks write their programs instead, as `programs_of` names them.
    """
    parts = parts_of(job, timeout_s)
    with TemporaryDirectory(prefix="chakra-run-") as folder:
        paths = [Path(folder) / f"trace.{part.rank}.et" for part in parts]
        for part, path in zip(parts, paths, strict=True):
            write(traces[part.rank], path)
        programs = [None] * len(parts) if emit is None else programs_of(emit, len(parts))
        given = [
            (str(path), part, settings, program)
            for path, part, program in zip(paths, parts, programs, strict=True)
        ]
        done = launch("chakra_et.benchmark.comms.rank", "run_operators", given)
    return collected(traces, job, settings, done)


def collected(
    traces: TraceSet, job: Job, settings: Settings, done: Sequence[tuple[Outcome, RankOutcome]]
) -> AllRanks:
    """What came of all ranks, from what each saw, in the order of the processes."""
    outcomes = {rank: outcome for rank, (outcome, _) in zip(job.listing.calls, done, strict=True)}
    if settings.record is not None:
        _certify(traces, outcomes, settings)
    return AllRanks(outcomes, job.figures([each for _, each in done]))


def programs_of(path: Path, ranks: int) -> list[Path]:
    """Where the program of each process goes: `benchmark.0.py`, `benchmark.1.py`."""
    return [path.with_name(f"{path.stem}.{rank}{path.suffix}") for rank in range(ranks)]


def parts_of(job: Job, timeout_s: float) -> list[Part]:
    """What each process of a job is told."""
    place = {rank: process for process, rank in enumerate(job.listing.calls)}
    members = {g: tuple(place[r] for r in g.ranks) for g in job.listing.groups}
    return [
        Part(rank, job.recorded.calls[rank], calls, members, place, timeout_s)
        for rank, calls in job.listing.calls.items()
    ]


def program_of(trace: Trace, part: Part, settings: Settings) -> tuple[Program, CommunicationWriter]:
    """The program of a rank, and who wrote its communication."""
    writer = CommunicationWriter(
        {call.node: call for call in part.recorded},
        {call.node: call for call in part.calls},
        part.members,
        part.process,
        part.timeout_s,
        None if settings.back_end is BackEnd.DRY else has_overload,
    )
    program = prepare(trace, settings, [writer])
    wait_where_needed(program)
    return program, writer


def dry_run(traces: TraceSet, job: Job, settings: Settings) -> AllRanks:
    """What would run on all ranks."""
    outcomes = {
        part.rank: run(program_of(traces[part.rank], part, settings)[0], settings)
        for part in parts_of(job, 0)
    }
    return AllRanks(outcomes, job.figures())


def saw(
    part: Part, nodes: dict[int, list[int]], took: dict[int, list[int]], outcome: Outcome
) -> RankOutcome:
    """What a rank saw of its calls: `took` has the times of each operation, of all its runs.

    `nodes` has the nodes that each operation stands for. The time of calls that no edge leads to
    from an operation is not known.
    """
    by_node = {node: took[n] for n, each in nodes.items() if n in took for node in each}
    count = len(outcome.spans_ns)
    runs = [by_node.get(call.node, [])[-count:] for call in part.calls]
    durations = [[run[i] if i < len(run) else 0 for run in runs] for i in range(count)]
    return RankOutcome(
        rank=part.rank, backend=BACKENDS[outcome.back_end], durations_ns=durations,
        spans_ns=outcome.spans_ns, checked=0, wrong=[], wrong_count=0, as_bytes=0, buffer_bytes=0,
    )  # fmt: skip


def _certify(traces: TraceSet, outcomes: dict[int, Outcome], settings: Settings) -> None:
    """Compare the recording of each rank's run with what it was made from."""
    from chakra_et.loading import load

    assert settings.record is not None
    again = load(settings.record)
    for place, (rank, outcome) in enumerate(outcomes.items()):
        choice = Choice(settings.window)
        outcome.certificate = certificate(traces[rank], again[place], choice)
