"""The conversions of a run, and what was no part of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from chakra_et.conversion import Conversion
from chakra_et.search import PassedOver, told_passed_over

if TYPE_CHECKING:
    from chakra_et.jobs.failures import Failure


class Conversions(list[Conversion]):
    """The conversions of a run, the ranks that failed, and the files that were no part of it."""

    def __init__(
        self,
        conversions: Iterable[Conversion],
        passed_over: list[PassedOver],
        failures: Sequence[Failure] = (),
    ) -> None:
        super().__init__(conversions)
        self.passed_over = passed_over
        self.failures = list(failures)


def with_others(
    conversions: list[Conversion], others: list[PassedOver], failures: Sequence[Failure] = ()
) -> Conversions:
    """The conversions, the first of which tells of the files that were passed over."""
    told = told_passed_over(others)
    if told is not None:
        conversions[0].report.warnings.append(told)
    return Conversions(conversions, others, failures)
