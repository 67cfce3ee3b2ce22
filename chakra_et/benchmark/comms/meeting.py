"""Before anything starts: calls that would never meet, and ranks that are not there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from chakra_et.benchmark.comms.listing import Listing
from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet
from chakra_et.validators import Severity
from chakra_et.validators.engine import run_rules
from chakra_et.validators.inputs import from_traces
from chakra_et.validators.profiles import Profile

_RULES: Final = ("ET403", "ET502", "ET503", "ET504", "ET505", "ET506", "ET510")
"""What keeps the calls of ranks from meeting, as `chakra validate` finds it."""
_PROFILE: Final = Profile(
    "meeting",
    "All collectives and messages meet.",
    "chakra run",
    dict.fromkeys(_RULES, Severity.ERROR),
)
_SHOWN: Final = 5


def unmet(traces: TraceSet) -> list[str]:
    """Texts about calls of the ranks at hand that would wait for each other forever."""
    found = []
    for outcome in run_rules(from_traces(traces), _PROFILE).outcomes:
        for finding in outcome.findings:
            place = f"{finding.place}: " if finding.place else ""
            found.append(f"{place}{finding.evidence} ({outcome.rule.id}: {outcome.rule.title})")
    return found


def absent_ranks(listing: Listing) -> list[int]:
    """Ranks that others communicate with, and of which there is no trace."""
    wanted: set[int] = set()
    for calls in listing.calls.values():
        for call in calls:
            wanted.update(call.group.ranks)
    return sorted(wanted - set(listing.calls))


def expect_ranks(listing: Listing) -> None:
    """Raises ChakraError where traces of ranks are missing."""
    absent = absent_ranks(listing)
    if absent:
        raise ChakraError(
            f"no trace of {_ranks(absent)}, which rank {min(listing.calls)} communicates with",
            remedy=f"Give the files of all {listing.world_size} ranks, or run on those at hand "
            f"with --shrink {len(listing.calls)}.",
        )


def expect_meeting(problems: Iterable[str]) -> None:
    """Raises ChakraError for calls that would never meet, with the first few of them."""
    told = list(problems)
    if told:
        more = len(told) - _SHOWN
        rest = [f"… and {more} more"] if more > 0 else []
        listed = "\n".join(f"  {text}" for text in [*told[:_SHOWN], *rest])
        raise ChakraError(
            f"these collectives or messages would never meet, so nothing was started:\n{listed}",
            remedy="chakra explain says what each rule is about, and what cures it.",
        )


def _ranks(ranks: list[int]) -> str:
    listed = ", ".join(map(str, ranks[:8])) + (", …" if len(ranks) > 8 else "")
    return f"rank {listed}" if len(ranks) == 1 else f"ranks {listed}"
