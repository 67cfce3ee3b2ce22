"""Giving the traces of a run their names: each by its rank, all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import msgspec

from chakra_et.conversion import Conversion
from chakra_et.errors import ChakraError
from chakra_et.jobs.crew import Result
from chakra_et.jobs.job import Job, Outcome
from chakra_et.jobs.parts import Parts
from chakra_et.run_directory import FileState, Origin
from chakra_et.urls import shown_path


def numbered(
    jobs: Sequence[Job], results: Sequence[Result]
) -> dict[int, tuple[Conversion, Outcome]]:
    """Each conversion by its rank, or by the next free number where it has none.

    What failed without a rank has a number, too. Raises ChakraError where two are of one rank.
    """
    found: dict[int, tuple[Conversion, Outcome]] = {}
    owners: dict[int, Path] = {}
    told = {rank for job, result in zip(jobs, results, strict=True) for rank in _told(job, result)}
    free = (number for number in count() if number not in told)
    for job, result in zip(jobs, results, strict=True):
        if isinstance(result, ChakraError):
            if job.pair.rank is None:
                next(free)
            continue
        for conversion in result.conversions:
            rank = conversion.report.rank
            number = next(free) if rank is None else rank
            if number in found:
                raise ChakraError(
                    f"two recordings are of rank {number}; the other one is {owners[number]}",
                    path=job.pair.files[0].path,
                    remedy="Give the files of one run only.",
                )
            found[number] = conversion, result
            owners[number] = job.pair.files[0].path
    return dict(sorted(found.items()))


def _told(job: Job, result: Result) -> list[int | None]:
    """The ranks that files tell, as far as they do."""
    if isinstance(result, ChakraError):
        return [job.pair.rank]
    return [conversion.report.rank for conversion in result.conversions]


def publish_run(
    parts: Parts, prefix: str, found: dict[int, tuple[Conversion, Outcome]], force: bool
) -> None:
    """Let all traces of a run appear in its directory; the parts keep what tells of them."""
    named: dict[str, tuple[str, int]] = {}
    origins: dict[str, Origin] = {}
    names: dict[str, dict[int, str]] = {}
    for number, (conversion, outcome) in found.items():
        name = f"{prefix}.{number}.et"
        place = next(i for i, each in enumerate(outcome.conversions) if each is conversion)
        state = outcome.outputs[place]
        named[name] = outcome.key, place
        origins[name] = Origin(state.bytes, state.sha256, outcome.inputs)
        names.setdefault(outcome.key, {})[place] = name
    for key, of_key in names.items():
        _name(parts, key, of_key)
    parts.publish(prefix, named, force, origins)
    for name, (conversion, _) in zip(named, found.values(), strict=True):
        conversion.output = parts.target / name
        if conversion.report.output is not None:
            conversion.report.output["path"] = shown_path(conversion.output)
    earlier = {outcome.earlier for _, outcome in found.values()}
    parts.clean(names.keys() | earlier)


def _name(parts: Parts, key: str, names: dict[int, str]) -> None:
    """Note in a record under which names its traces are published."""
    record = parts.record(key)
    if record is None:
        return
    outputs = [
        FileState(names.get(place, ""), state.bytes, state.sha256)
        for place, state in enumerate(record.outputs)
    ]
    if outputs != record.outputs:
        parts.keep(key, msgspec.structs.replace(record, outputs=outputs))
