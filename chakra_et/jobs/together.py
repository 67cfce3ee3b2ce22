"""A run of many ranks: each converted by itself, then again where others know better.

Ranks tell each other process groups, senders and refuted guesses. That needs all of them, so it is
one place, whoever converts them; what each learns is part of what its conversion is known by.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from chakra_et.conversion import Conversion, Options
from chakra_et.errors import ChakraError
from chakra_et.jobs.crew import Crew, Result
from chakra_et.jobs.job import Job, Outcome
from chakra_et.jobs.judging import judge_ranks
from chakra_et.linker.communication.accounts import Told
from chakra_et.linker.communication.across_ranks import settle
from chakra_et.linker.guesses.other_ranks import Verdict, judged_by_others


def convert_together(jobs: Sequence[Job], crew: Crew) -> list[Result]:
    """What came of each job; those that other ranks tell something of are performed again."""
    return learned(jobs, crew.perform(jobs), crew)


def learned(jobs: Sequence[Job], found: list[Result], crew: Crew) -> list[Result]:
    """The outcomes of a run after each rank has learned what others tell of it.

    Jobs whose traces are not there (any more) are performed again, too.
    """
    outcomes = [(job, result) for job, result in zip(jobs, found, strict=True)]
    known = [(job, result) for job, result in outcomes if isinstance(result, Outcome)]
    accounts = [c.report.account for _, outcome in known for c in outcome.conversions]
    told = settle([account for account in accounts if account is not None])
    verdicts = _verdicts(known, crew)
    again = {
        place: replace(job, options=_with(job.options, result, told, verdicts), resume=job.resume)
        for place, (job, result) in enumerate(outcomes)
        if isinstance(result, Outcome) and _learns(result, told, verdicts)
    }
    for place, (job, result) in enumerate(outcomes):
        if place not in again and isinstance(result, Outcome) and not result.whole:
            again[place] = replace(job, resume=False)
    found = list(found)
    for place, result in _performed(again, crew).items():
        before = found[place]
        if isinstance(result, Outcome) and isinstance(before, Outcome):
            result.earlier = before.key
        found[place] = result
    for result in found:
        if isinstance(result, Outcome):
            _tell(result, verdicts)
    return found


def _performed(again: dict[int, Job], crew: Crew) -> dict[int, Result]:
    """What came of some jobs, by place; what was done before and is gone is performed anew."""
    found = dict(zip(again, crew.perform(list(again.values())), strict=True)) if again else {}
    gone = {
        place: replace(again[place], resume=False)
        for place, result in found.items()
        if isinstance(result, Outcome) and not result.whole
    }
    return found | (_performed(gone, crew) if gone else {})


def _ranks(outcome: Outcome) -> set[int]:
    ranks = {conversion.report.rank for conversion in outcome.conversions}
    return {rank for rank in ranks if rank is not None}


def _learns(
    outcome: Outcome, told: dict[int, dict[int, Told]], verdicts: dict[int, Verdict]
) -> bool:
    """Whether others know better of a rank of this outcome."""
    return any(
        rank in told or (rank in verdicts and verdicts[rank].any_refuted)
        for rank in _ranks(outcome)
    )


def _with(
    options: Options,
    outcome: Outcome,
    told: dict[int, dict[int, Told]],
    verdicts: dict[int, Verdict],
) -> Options:
    """The options of a conversion with what others tell of its ranks, and of no others."""
    ranks = sorted(_ranks(outcome))
    return replace(
        options,
        told={rank: told[rank] for rank in ranks if rank in told},
        verdicts={rank: verdicts[rank] for rank in ranks if rank in verdicts},
    )


def _tell(outcome: Outcome, verdicts: dict[int, Verdict]) -> None:
    """Put what others say into the reports; their accounts have served."""
    for conversion in outcome.conversions:
        report = conversion.report
        report.guesses = None
        if report.rank in verdicts:
            report.joins += verdicts[report.rank].joins()


def _verdicts(known: list[tuple[Job, Outcome]], crew: Crew) -> dict[int, Verdict]:
    """What ranks say of each other's inferred edges, by rank."""
    places = [
        (conversion.report, job.parts, outcome.key, place)
        for job, outcome in known
        for place, conversion in enumerate(outcome.conversions)
        if conversion.report.rank is not None
    ]
    ranks = [report.rank for report, *_ in places if report.rank is not None]
    if not 1 < len(set(ranks)) == len(ranks):
        return {}
    parts = places[0][1]
    if parts is None:
        return judged_by_others(
            [
                (report.rank, report.guesses)
                for report, *_ in places
                if report.rank is not None and report.guesses is not None
            ]
        )
    kept = [(key, place) for _, _, key, place in places]
    return dict(zip(ranks, judge_ranks(parts, kept, crew), strict=True))


def conversions_of(result: Result) -> list[Conversion]:
    """The conversions of an outcome; none of an error."""
    return [] if isinstance(result, ChakraError) else result.conversions
