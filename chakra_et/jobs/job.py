"""One conversion of a run: a pair of files, whoever converts it, wherever that is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from chakra_et.conversion import Conversion, Options, convert_pair
from chakra_et.errors import ChakraError, FormatError
from chakra_et.jobs.fetched import fetched, tell_urls
from chakra_et.jobs.parts import Parts, Record
from chakra_et.jobs.states import key_of, stamp_of, state_of
from chakra_et.pairing import Pair
from chakra_et.run_directory import FileState, sha256_of
from chakra_et.urls import url_of


class Job(msgspec.Struct, frozen=True):
    """A pair to convert. Without `parts`, its traces are kept in memory.

    With `resume`, what is there already is not made again.
    """

    pair: Pair
    options: Options
    parts: Parts | None = None
    resume: bool = False

    @property
    def bytes(self) -> int:
        """About how many bytes there are to read, without compression."""
        return sum(file.bytes for file in self.pair.files)


class Outcome(msgspec.Struct):
    """What came of a job: a conversion for each of its traces.

    `key` names it among the parts, `earlier` what was made before ranks learned of each other.
    `whole` says whether its traces lie there, `reused` whether it was done before.
    """

    conversions: list[Conversion]
    key: str = ""
    earlier: str = ""
    inputs: list[FileState] = msgspec.field(default_factory=list)
    outputs: list[FileState] = msgspec.field(default_factory=list)
    whole: bool = True
    reused: bool = False


def elsewhere(job: Job) -> Job:
    """The job for a process that may have another current directory."""
    sides = {side: getattr(job.pair, side) for side in ("host", "device", "whole")}
    files: dict[str, Any] = {
        side: replace(given, path=_absolute(given.path))
        for side, given in sides.items()
        if given is not None
    }
    parts = job.parts
    if parts is not None:
        parts = type(parts)(_absolute(parts.folder), _absolute(parts.target))
    return replace(job, pair=replace(job.pair, **files), parts=parts)


def _absolute(path: Path) -> Path:
    return path if url_of(path) else path.absolute()


def tried(job: Job) -> Outcome | ChakraError:
    """What came of a job, or the error that it ended with."""
    try:
        return perform(job)
    except ChakraError as error:
        return error


def perform(job: Job) -> Outcome:
    """Convert a pair, or find that this was done. Raises ChakraError as `convert` does."""
    if job.parts is None:
        return Outcome(_converted(job))
    before = _stamps(job.pair)
    inputs = [state_of(file) for file in job.pair.files]
    key = key_of(job.pair, job.options, inputs)
    record = job.parts.record(key) if job.resume else None
    if record is not None:
        return outcome_of(job.parts, key, record)
    conversions = _converted(job)
    if _stamps(job.pair) != before:
        raise FormatError(
            "the file changed while it was read",
            path=job.pair.files[0].path,
            remedy="Convert it when it is complete; --resume keeps what is done.",
        )
    outputs = _write(job.parts, key, conversions)
    reports = [conversion.report for conversion in conversions]
    job.parts.keep(key, Record(inputs, outputs, reports))
    for report in reports:
        # They are large, and the record has them.
        report.guesses = None
    return Outcome(conversions, key, inputs=inputs, outputs=outputs)


def _converted(job: Job) -> list[Conversion]:
    with fetched(job.pair) as pair:
        conversions = convert_pair(pair, job.options)
    for conversion in conversions:
        tell_urls(conversion.report, job.pair, pair)
    return conversions


def outcome_of(parts: Parts, key: str, record: Record) -> Outcome:
    """The outcome of a conversion that was done before."""
    conversions = []
    for place, report in enumerate(record.reports):
        report.guesses = None
        conversions.append(Conversion(report, parts.output(key, place)))
    whole = parts.has(key, record)
    return Outcome(
        conversions,
        key,
        inputs=record.inputs,
        outputs=record.outputs,
        whole=whole,
        reused=True,
    )


def _write(parts: Parts, key: str, conversions: list[Conversion]) -> list[FileState]:
    """Write the traces of a conversion to its directory, and keep none in memory."""
    parts.begin(key)
    states = []
    for place, conversion in enumerate(conversions):
        path = parts.output(key, place)
        conversion.write(path)
        conversion.kept = None
        states.append(FileState("", path.stat().st_size, sha256_of(path)))
    return states


def _stamps(pair: Pair) -> list[tuple[int, int] | None]:
    """Sizes and times of the files, as far as they are files."""
    return [stamp_of(file.path) for file in pair.files]
