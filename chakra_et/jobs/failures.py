"""Ranks that cannot be converted: who they are, and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, Final

import msgspec

from chakra_et.errors import ChakraError, FormatError
from chakra_et.inputs import pid_in_name, rank_in_name
from chakra_et.jobs.crew import Result
from chakra_et.jobs.job import Job
from chakra_et.pairing import Pair
from chakra_et.patterns import lazy_pattern
from chakra_et.search import PassedOver

_DIGITS: Final = lazy_pattern(r"\d+")
_PROFILE: Final = lazy_pattern(r"\.pt\.trace\.json(\.gz)?$")


class Failure(msgspec.Struct, frozen=True):
    """The files of a rank, as people know them, and the error that they ended with."""

    files: tuple[str, ...]
    error: ChakraError

    def as_dict(self) -> dict[str, Any]:
        """The failure as it stands in a report."""
        return {"files": list(self.files), "error": str(self.error)}


def failures_of(jobs: Sequence[Job], results: Sequence[Result]) -> list[Failure]:
    """The jobs of a run that failed."""
    return [
        Failure(tuple(file.name for file in job.pair.files), _named(result, job.pair))
        for job, result in zip(jobs, results, strict=True)
        if isinstance(result, ChakraError)
    ]


def first_error(jobs: Sequence[Job], results: Sequence[Result]) -> None:
    """Raise the first error of a run, which says what became of the other ranks."""
    failed = failures_of(jobs, results)
    if not failed:
        return
    error, count = failed[0].error, len(jobs)
    done = count - len(failed)
    others = f" ({done} of {count} pairs could be converted, nothing was written)"
    raise type(error)(
        error.problem.rstrip(".") + others * (count > 1),
        path=error.path,
        place=error.place,
        remedy=error.remedy,
    )


def _named(error: ChakraError, pair: Pair) -> ChakraError:
    """An error that names a file."""
    if error.path is not None:
        return error
    return type(error)(
        error.problem, path=pair.files[0].path, place=error.place, remedy=error.remedy
    )


def unread_ranks(
    pairs: list[Pair], others: list[PassedOver]
) -> tuple[list[Pair], list[PassedOver], list[Failure]]:
    """Of the files that nothing can read, those that must be of a rank, and what is left.

    Such a file is called as others of the run are, but for numbers, or as profiles are. The other
    file of its rank is no rank of its own; nor is a host trace that tells no rank, which may be it.
    """
    shapes = {_shape(file.name) for pair in pairs for file in pair.files}
    unread = [
        other
        for other in others
        if other.unreadable and (_shape(other.name) in shapes or _PROFILE.search(other.name))
    ]
    halves = [pair for pair in pairs if not pair.complete and pair.whole is None]
    failures, taken = [], list[Pair]()
    for other in unread:
        mine = [pair for pair in halves if pair not in taken and _is_of(other, pair)][:1]
        mine = mine or [p for p in halves if p not in taken and p.rank is None and p.host]
        taken += mine
        files = [file.name for pair in mine for file in pair.files]
        error = FormatError(
            f"nothing can read this file ({other.reason})",
            path=other.name,
            remedy="Copy or record it again.",
        )
        failures.append(Failure((other.name, *files), error))
    kept = [pair for pair in pairs if pair not in taken]
    return kept, [other for other in others if other not in unread], failures


def _is_of(other: PassedOver, pair: Pair) -> bool:
    """Whether a name tells that a file is of the rank or the process of a pair."""
    rank, pid = rank_in_name(other.name), pid_in_name(other.name)
    of_process = pid is not None and pid in [file.pid for file in pair.files]
    return of_process or (rank is not None and rank == pair.rank)


def _shape(name: str) -> str:
    return _DIGITS.sub("#", PurePath(name).name)
