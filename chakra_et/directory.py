"""Converting all ranks of a run: several at the same time, each by a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import starmap
from pathlib import Path
from typing import Any, Final, TypeAlias

from chakra_et.conversion import Conversion, Options, PathLike, convert_one, convert_pair
from chakra_et.errors import ChakraError
from chakra_et.io.memory import available_bytes
from chakra_et.io.output import is_standard_output, make_directory
from chakra_et.io.protected import inputs_protected, refuse_input
from chakra_et.io.worker import Worker
from chakra_et.linker.communication.across_ranks import settle
from chakra_et.linker.guesses.other_ranks import Verdict, judged_by_others
from chakra_et.linker.window import window
from chakra_et.pairing import Pair, find_pairs
from chakra_et.run_directory import RunDirectory, run_directory
from chakra_et.search import PassedOver, told_passed_over

_SHOWN: Final = 5
"""So many pairs are named in an error."""
_MEMORY_FACTOR: Final = 2
"""Memory that a conversion may take, in sizes of its input: 1.4 for a pair of 193 MB, and room."""
_LARGE_BYTES: Final = 24 << 20
"""Below this, a process takes longer to begin than the conversion takes."""
_FILE_SUFFIXES: Final = (".et", ".json", ".gz", ".zst")


Outcome: TypeAlias = list[Conversion] | ChakraError
Step: TypeAlias = Callable[[int, int], None]
"""Hears how many ranks are done, and of how many."""


class Conversions(list[Conversion]):
    """The conversions of a run, and the files that were no part of it."""

    def __init__(self, conversions: Iterable[Conversion], passed_over: list[PassedOver]) -> None:
        super().__init__(conversions)
        self.passed_over = passed_over


def convert_files(
    files: PathLike | Iterable[PathLike],
    output: PathLike | None,
    *,
    rank: int | None = None,
    prefix: str = "trace",
    strict: bool = False,
    steps: str | None = None,
    annotation: str | None = None,
    align_clocks: bool = False,
    jobs: int | None = None,
    force: bool = False,
    skip: PathLike | None = None,
    step: Step | None = None,
) -> Conversions:
    """Convert files of any kind that is read here, told by content, in any order.

    Directories are descended and archives are opened. Host traces and profiles are paired by
    process id, else by the rank in metadata or name; a file without a counterpart is converted
    alone. A profile that was merged from several processes stands for the profiles of each. ETs
    are written as they are. Files of a directory that are no traces are passed over. A directory
    `skip`, by default the output, is not entered.

    `output` is a file if its name ends like one (`.et`, `.json`, `.gz`, `.zst`), and then there
    must be but one rank; else it is a directory that gets `{prefix}.{rank}.et` for each rank, and
    no trace is kept in memory. Without it nothing is written and all are kept. `rank` is that of
    the only rank, if no file tells. Other options are those of `convert`.

    `jobs` ranks are converted at the same time, by default as many as cores and free memory allow;
    the result does not depend on it. A directory that holds ranks of another run is refused,
    unless `force` may remove those that a manifest lists. `step` is called with the number of ranks
    that are converted, and of all. Raises ChakraError as `convert` does, and when there is nothing
    to convert or two recordings have one rank; then nothing is written.
    """
    if jobs is not None and jobs < 1:
        raise ChakraError(f"--jobs {jobs}: expected 1 or more", remedy="Give --jobs 1, or more.")
    options = Options(strict, window(steps, annotation), align_clocks)
    target = None if output is None else Path(output)
    skipped = target if skip is None else Path(skip)
    pairs, others = find_pairs([files] if isinstance(files, (str, Path)) else files, skipped)
    if rank is not None:
        _expect_one(pairs, "--rank sets one rank")
        pairs = [replace(pairs[0], asked=rank)]
    with inputs_protected(*(file.path for pair in pairs for file in pair.files)):
        if target is not None and names_a_file(target):
            _expect_one(pairs, "this names one file", target)
            found = [_convert_to_file(target, pairs[0], options)]
        else:
            crew = _Crew(_sensible_jobs(pairs, jobs), step or _nobody)
            found = _convert_to(target, pairs, options, prefix, crew, force)
    return _with_others(found, others)


@dataclass(frozen=True)
class _Crew:
    """How many conversions are made at the same time, and who hears of those that are done."""

    jobs: int
    step: Step

    def counted(self, outcomes: Iterable[Outcome], count: int) -> list[Outcome]:
        """All outcomes, each told as it comes."""
        found = []
        for outcome in outcomes:
            found.append(outcome)
            self.step(len(found), count)
        return found


def _nobody(_done: int, _of: int) -> None:
    """Nobody wants to hear."""


def convert_directory(
    directory: PathLike, output_directory: PathLike | None, **options: Any
) -> Conversions:
    """All ranks of a directory; options are those of `convert_files`."""
    return convert_files(directory, output_directory, **options)


def names_a_file(output: Path) -> bool:
    """Whether an output is one file: by its name, or because a file of that name is there."""
    if output.is_dir():
        return False
    return output.suffix in _FILE_SUFFIXES or output.exists() or is_standard_output(output)


def _convert_to_file(target: Path, pair: Pair, options: Options) -> Conversion:
    refuse_input(target)
    conversion = convert_one(pair, options)
    conversion.report.guesses = None
    make_directory(target.parent)
    conversion.write(target)
    return conversion


def _convert_to(
    target: Path | None,
    pairs: list[Pair],
    options: Options,
    prefix: str,
    crew: _Crew,
    force: bool,
) -> list[Conversion]:
    """The conversions of all pairs, in order of rank, written to a directory if that is given."""
    if target is None:
        return _in_order(_numbered(pairs, _convert_together(pairs, options, None, crew)))
    with run_directory(target, prefix, force) as run:
        found = _numbered(pairs, _convert_together(pairs, options, run.stage, crew))
        for number, conversion in found.items():
            _publish(run, conversion, f"{prefix}.{number}.et")
    return _in_order(found)


def _in_order(found: dict[int, Conversion]) -> list[Conversion]:
    return [found[number] for number in sorted(found)]


def _expect_one(pairs: list[Pair], problem: str, path: Path | None = None) -> None:
    """Raises ChakraError where there are several ranks."""
    if len(pairs) == 1:
        return
    files = ", ".join(" and ".join(file.name for file in pair.files) for pair in pairs[:_SHOWN])
    more = ", …" * (len(pairs) > _SHOWN)
    raise ChakraError(
        f"{problem}, but the inputs have {len(pairs)} ranks ({files}{more})",
        path=path,
        remedy="Name a directory, or give the files of one rank.",
    )


def _convert_together(
    pairs: list[Pair], options: Options, staging: Path | None, crew: _Crew
) -> list[list[Conversion]]:
    """The conversions of each pair; those that other ranks tell something of are made anew."""
    found = _convert_all(pairs, options, staging, crew)
    accounts = [c.report.account for of_pair in found for c in of_pair]
    told = settle([account for account in accounts if account is not None])
    verdicts = _verdicts(found)
    better = {*told, *(rank for rank, verdict in verdicts.items() if verdict.any_refuted)}
    again = [p for p, of_pair in enumerate(found) if any(c.report.rank in better for c in of_pair)]
    if again:
        options = replace(options, told=told, verdicts=verdicts)
        anew = _convert_all([pairs[place] for place in again], options, staging, crew, again)
        for place, of_pair in zip(again, anew, strict=True):
            found[place] = of_pair
    for conversion in (c for of_pair in found for c in of_pair):
        conversion.report.guesses = None
        if conversion.report.rank in verdicts:
            conversion.report.joins += verdicts[conversion.report.rank].joins()
    return found


def _verdicts(found: list[list[Conversion]]) -> dict[int, Verdict]:
    """What ranks say of each other's inferred edges, by rank."""
    reports = [conversion.report for of_pair in found for conversion in of_pair]
    accounts = [
        (r.rank, r.guesses) for r in reports if r.rank is not None and r.guesses is not None
    ]
    ranks = [rank for rank, _ in accounts]
    return judged_by_others(accounts) if 1 < len(set(ranks)) == len(ranks) else {}


def _convert_all(
    pairs: list[Pair],
    options: Options,
    staging: Path | None,
    crew: _Crew,
    places: Iterable[int] | None = None,
) -> list[list[Conversion]]:
    """The conversions of each pair. Raises the first error, after all were tried.

    In `staging` they are called by their `places`.
    """
    work = [
        (pair, options, None if staging is None else staging / str(place))
        for place, pair in zip(range(len(pairs)) if places is None else places, pairs, strict=True)
    ]
    if crew.jobs == 1:
        outcomes = crew.counted(starmap(_tried, work), len(work))
    else:
        # Threads only wait here; the work is done by an interpreter of its own for each pair.
        running: list[Worker] = []
        with ThreadPoolExecutor(crew.jobs) as pool:
            try:
                outcomes = crew.counted(
                    pool.map(lambda item: _tried_in_worker(running, *item), work), len(work)
                )
            except BaseException:
                for worker in running:
                    worker.end()
                raise
    converted = [outcome for outcome in outcomes if not isinstance(outcome, ChakraError)]
    for pair, outcome in zip(pairs, outcomes, strict=True):
        if isinstance(outcome, ChakraError):
            raise _explained(outcome, pair, len(converted), len(pairs))
    return converted


def _tried(pair: Pair, options: Options, stage: Path | None) -> Outcome:
    try:
        return convert_and_write(pair, options, stage)
    except ChakraError as error:
        return error


def _tried_in_worker(
    running: list[Worker], pair: Pair, options: Options, stage: Path | None
) -> Outcome:
    """As `_tried`, by another interpreter, which joins those that are `running`."""
    try:
        with Worker(__name__, "convert_and_write", pair, options, stage) as worker:
            running.append(worker)
            found: list[Conversion] = worker.result()
            return found
    except ChakraError as error:
        return error


def convert_and_write(pair: Pair, options: Options, stage: Path | None) -> list[Conversion]:
    """The conversions of a pair; with `stage`, written under such names and not kept in memory."""
    conversions = convert_pair(pair, options)
    if stage is not None:
        for place, conversion in enumerate(conversions):
            conversion.write(stage.with_name(f"{stage.name}.{place}.et"))
            conversion.kept = None
    return conversions


def _explained(error: ChakraError, pair: Pair, converted: int, count: int) -> ChakraError:
    """The error of one pair, which names a file and says what became of the other pairs."""
    others = f" ({converted} of {count} pairs could be converted, nothing was written)"
    return type(error)(
        error.problem.rstrip(".") + others * (count > 1),
        path=error.path or pair.files[0].path,
        place=error.place,
        remedy=error.remedy,
    )


def _numbered(pairs: list[Pair], conversions: list[list[Conversion]]) -> dict[int, Conversion]:
    """Each conversion by its rank, or by its place where it has none."""
    found: dict[int, Conversion] = {}
    owners: dict[int, Path] = {}
    for pair, of_pair in zip(pairs, conversions, strict=True):
        for conversion in of_pair:
            rank = conversion.report.rank
            number = len(found) if rank is None else rank
            if number in found:
                raise ChakraError(
                    f"two recordings are of rank {number}; the other one is {owners[number]}",
                    path=pair.files[0].path,
                    remedy="Give the files of one run only.",
                )
            found[number], owners[number] = conversion, pair.files[0].path
    return found


def _with_others(conversions: list[Conversion], others: list[PassedOver]) -> Conversions:
    """The conversions, the first of which tells of the files that were passed over."""
    told = told_passed_over(others)
    if told is not None:
        conversions[0].report.warnings.append(told)
    return Conversions(conversions, others)


def _publish(run: RunDirectory, conversion: Conversion, name: str) -> None:
    """Let a conversion that was written to the stage appear under its name."""
    assert conversion.output is not None
    assert conversion.report.output is not None
    run.add(name, conversion.output)
    conversion.output = run.target / name
    conversion.report.output["path"] = str(conversion.output)


def _sensible_jobs(pairs: list[Pair], asked: int | None) -> int:
    """As many as asked for, else as cores and free memory allow; one where the files are small."""
    if len(pairs) == 1 or any(file.is_pipe for pair in pairs for file in pair.files):
        return 1
    if asked is not None:
        return min(asked, len(pairs))
    largest = max(sum(file.bytes for file in pair.files) for pair in pairs)
    if largest < _LARGE_BYTES:
        return 1
    cores = os.cpu_count() or 1
    room = int(available_bytes() / (_MEMORY_FACTOR * largest))
    return max(1, min(cores, room, len(pairs)))
