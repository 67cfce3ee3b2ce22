"""A communication benchmark from its traces to its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from chakra_et.benchmark.choices import ShrinkAs
from chakra_et.benchmark.comms.agree import agree
from chakra_et.benchmark.comms.call import Plan, RankOutcome, Settings
from chakra_et.benchmark.comms.figures import Figures, figures_of
from chakra_et.benchmark.comms.listing import Listing, list_calls
from chakra_et.benchmark.comms.meeting import expect_meeting, expect_ranks, unmet
from chakra_et.benchmark.comms.shrink import kept_traces, shrink
from chakra_et.benchmark.launcher import launch
from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet


@dataclass(frozen=True)
class Job:
    """What all ranks run."""

    listing: Listing
    recorded: Listing
    """What was recorded on the ranks that run."""
    recorded_ranks: int

    @property
    def plans(self) -> list[Plan]:
        """What each process runs."""
        members, groups = tuple(self.listing.calls), tuple(self.listing.groups)
        return [
            Plan(rank, members, tuple(calls), groups) for rank, calls in self.listing.calls.items()
        ]

    def figures(self, outcomes: Sequence[RankOutcome] = ()) -> Figures:
        """What ranks saw, in their order; without that, what they are to run."""
        return figures_of(self.recorded_ranks, self.listing, outcomes)


def prepare(traces: TraceSet, ranks: int | None = None, how: ShrinkAs = ShrinkAs.GROUP) -> Job:
    """The job of a run's traces, on fewer `ranks` than recorded if it is told.

    Raises ChakraError where traces are missing, where there is nothing to run, and where calls
    would never meet.
    """
    if ranks is not None:
        traces = kept_traces(traces, ranks)
    listing = list_calls(traces)
    _expect_some(listing)
    if ranks is None:
        expect_ranks(listing)
    expect_meeting([*unmet(traces), *agree(listing)])
    return Job(listing if ranks is None else shrink(listing, how), listing, listing.world_size)


def _expect_some(listing: Listing) -> None:
    if not any(listing.calls.values()):
        reasons = {one.reason for each in listing.skipped.values() for one in each}
        told = f" that can be run: {'; '.join(sorted(reasons))}" if reasons else ""
        raise ChakraError(
            f"the traces have no collective and no message{told}",
            remedy="Give the traces of a distributed run.",
        )


def run_job(job: Job, settings: Settings) -> Figures:
    """Run a job on processes of this machine.

    Raises ChakraError where a rank fails, or does not end in time, with the rank and the call.
    """
    arguments = [(plan, settings) for plan in job.plans]
    outcomes = launch("chakra_et.benchmark.comms.rank", "run_rank", arguments)
    return job.figures(outcomes)
