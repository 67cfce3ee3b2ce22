"""Converting all ranks of a run: several at the same time, each by a process of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from chakra_et.conversion import Conversion, Options, PathLike, convert_one
from chakra_et.errors import ChakraError
from chakra_et.io.cores import usable_cores
from chakra_et.io.memory import available_bytes
from chakra_et.io.output import is_standard_output, make_directory
from chakra_et.io.protected import inputs_protected, refuse_input
from chakra_et.jobs.crew import Crew, Result, Step, local_executor
from chakra_et.jobs.executors import Executor, Workers
from chakra_et.jobs.failures import Failure, failures_of, first_error, unread_ranks
from chakra_et.jobs.job import Job, elsewhere
from chakra_et.jobs.parts import Parts
from chakra_et.jobs.publish import numbered, publish_run
from chakra_et.jobs.remote_parts import parts_of
from chakra_et.jobs.shards import Merged, Shard, convert_shard, forget_shards, gather
from chakra_et.jobs.together import conversions_of, convert_together, learned
from chakra_et.linker.window import window
from chakra_et.pairing import Pair, find_pairs
from chakra_et.search import PassedOver, told_passed_over
from chakra_et.urls import shown_path, url_of

_SHOWN: Final = 5
"""So many pairs are named in an error."""
_FILE_SUFFIXES: Final = (".et", ".json", ".gz", ".zst")


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
    resume: bool = False,
    keep_going: bool = False,
    shard: str | None = None,
    executor: Executor | None = None,
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

    `jobs` ranks are converted at the same time, by default one for each core, as far as memory
    allows; the result does not depend on it. An `executor` performs the jobs instead. A directory
    that holds ranks of another run is refused, unless `force` may remove those that a manifest
    lists. `step` is called with the number of ranks that are converted, and of all.

    With `resume`, ranks whose files and options are as they were when they were converted to this
    directory are not converted again, whether that run came to its end or not. With `keep_going`,
    ranks that cannot be converted to a directory are listed in `failures` of the result, and all
    others are written; without it the first error is raised. With `shard`, "2/8" say, only every
    eighth rank is converted, and nothing is published: `merge_shards` does that when all are done.

    Raises ChakraError as `convert` does, and when there is nothing to convert or two recordings
    have one rank; then nothing is written.
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
            return _with_others([_convert_to_file(target, pairs[0], options)], others)
        parts = None if target is None else parts_of(target, prefix)
        unread: list[Failure] = []
        if parts is not None and (keep_going or shard is not None):
            pairs, others, unread = unread_ranks(pairs, others)
        work = [Job(pair, options, parts, resume) for pair in pairs]
        if executor is not None:
            work = [elsewhere(job) for job in work]
        with _crew(work, executor, jobs, step) as crew:
            if parts is None:
                found = [c for c, _ in numbered(work, _all_of(work, crew)).values()]
                return _with_others(found, others)
            if shard is not None:
                _expect_shared(parts.target)
                mine, results = convert_shard(work, Shard.parse(shard), parts, crew, others, unread)
                done = [c for result in results for c in conversions_of(result)]
                return Conversions(done, others, failures_of(mine, results))
            with _kept_for_later(parts):
                results = convert_together(work, crew)
                if not keep_going:
                    first_error(work, results)
                return _published(parts, prefix, Merged(work, results, others, unread), force)


def merge_shards(
    output: PathLike,
    *,
    prefix: str = "trace",
    jobs: int | None = None,
    force: bool = False,
    step: Step | None = None,
    executor: Executor | None = None,
) -> Conversions:
    """Publish the run whose shards `convert_files` has converted to a directory.

    What ranks learn of each other needs all of them, so some may be converted again. Options are
    those of `convert_files`; the result is what it gives without shards, with `keep_going`. Raises
    ChakraError where shards are missing, and as `convert_files` does.
    """
    parts = parts_of(Path(output), prefix)
    with Workers(jobs or usable_cores(), available_bytes()) as workers:
        crew = Crew(executor or workers, step or _nobody)
        merged = gather(parts, crew)
        with inputs_protected(*(file.path for job in merged.work for file in job.pair.files)):
            merged.results = learned(merged.work, merged.results, crew)
            found = _published(parts, prefix, merged, force)
    forget_shards(parts)
    return found


def _published(parts: Parts, prefix: str, run: Merged, force: bool) -> Conversions:
    """Publish all of a run that could be converted. Raises the first error where nothing could."""
    failures = [*run.unread, *failures_of(run.work, run.results)]
    named = numbered(run.work, run.results)
    if not named:
        raise failures[0].error
    publish_run(parts, prefix, named, force)
    return _with_others([conversion for conversion, _ in named.values()], run.others, failures)


@contextmanager
def _crew(
    work: list[Job], executor: Executor | None, jobs: int | None, step: Step | None
) -> Iterator[Crew]:
    if executor is not None:
        yield Crew(executor, step or _nobody)
        return
    with local_executor(work, jobs) as local:
        yield Crew(local, step or _nobody)


def _nobody(_done: int, _of: int) -> None:
    """Nobody wants to hear."""


def _all_of(work: list[Job], crew: Crew) -> list[Result]:
    """What came of all jobs. Raises the first error."""
    results = convert_together(work, crew)
    first_error(work, results)
    return results


@contextmanager
def _kept_for_later(parts: Parts) -> Iterator[None]:
    """The parts of a run stay for `resume` if it is interrupted; after an error they go.

    A directory that was made in vain goes, too.
    """
    made = not parts.target.exists()
    make_directory(parts.target)
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or not parts.any_done():
            parts.discard_unpublished()
        if made:
            with suppress(OSError):  # Something is in it.
                parts.target.rmdir()
        raise


def convert_directory(
    directory: PathLike, output_directory: PathLike | None, **options: Any
) -> Conversions:
    """All ranks of a directory; options are those of `convert_files`."""
    return convert_files(directory, output_directory, **options)


def _expect_shared(target: Path) -> None:
    """Raises ChakraError where shards cannot meet."""
    if url_of(target) is not None:
        raise ChakraError(
            "--shard needs a directory that all shards share",
            path=shown_path(target),
            remedy="Name a directory; --executor writes to a URL from many machines.",
        )
    make_directory(target)


def names_a_file(output: Path) -> bool:
    """Whether an output is one file: by its name, or because a file of that name is there."""
    if output.is_dir():
        return False
    return output.suffix in _FILE_SUFFIXES or output.exists() or is_standard_output(output)


def _convert_to_file(target: Path, pair: Pair, options: Options) -> Conversion:
    refuse_input(target)
    conversion = convert_one(pair, options)
    make_directory(target.parent)
    conversion.write(target)
    return conversion


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


def _with_others(
    conversions: list[Conversion], others: list[PassedOver], failures: Sequence[Failure] = ()
) -> Conversions:
    """The conversions, the first of which tells of the files that were passed over."""
    told = told_passed_over(others)
    if told is not None:
        conversions[0].report.warnings.append(told)
    return Conversions(conversions, others, failures)
