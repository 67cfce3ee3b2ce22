"""All ranks of a run as jobs: converted side by side, and published when all are there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from chakra_et.conversion import Options
from chakra_et.conversions import Conversions, with_others
from chakra_et.errors import ChakraError
from chakra_et.io.cores import usable_cores
from chakra_et.io.memory import available_bytes
from chakra_et.io.output import make_directory
from chakra_et.io.protected import inputs_protected
from chakra_et.jobs.crew import Crew, Result, Step, local_executor
from chakra_et.jobs.executors import Executor, Workers
from chakra_et.jobs.failures import Failure, failures_of, first_error, unread_ranks
from chakra_et.jobs.job import Job, elsewhere
from chakra_et.jobs.parts import Parts
from chakra_et.jobs.publish import numbered, publish_run
from chakra_et.jobs.remote_parts import parts_of
from chakra_et.jobs.shards import Merged, Shard, convert_shard, forget_shards, gather
from chakra_et.jobs.together import conversions_of, convert_together, learned
from chakra_et.pairing import Pair
from chakra_et.search import PassedOver
from chakra_et.urls import shown_path, url_of


def convert_run(
    pairs: list[Pair],
    others: list[PassedOver],
    target: Path | None,
    options: Options,
    *,
    prefix: str,
    jobs: int | None,
    force: bool,
    step: Step | None,
    resume: bool,
    keep_going: bool,
    shard: str | None,
    executor: Executor | None,
) -> Conversions:
    """Convert all pairs to a directory, or in memory where there is none.

    `others` are files that are no part of it; what else is asked for is that of `convert_files`.
    """
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
            return with_others(found, others)
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


def merge_run(
    target: Path,
    *,
    prefix: str,
    jobs: int | None,
    force: bool,
    step: Step | None,
    executor: Executor | None,
) -> Conversions:
    """Publish the run whose shards lie in a directory; options are those of `merge_shards`."""
    parts = parts_of(target, prefix)
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
    return with_others([conversion for conversion, _ in named.values()], run.others, failures)


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


def _expect_shared(target: Path) -> None:
    """Raises ChakraError where shards cannot meet."""
    if url_of(target) is not None:
        raise ChakraError(
            "--shard needs a directory that all shards share",
            path=shown_path(target),
            remedy="Name a directory; --executor writes to a URL from many machines.",
        )
    make_directory(target)
