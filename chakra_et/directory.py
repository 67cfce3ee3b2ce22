"""Converting all ranks of a run: several at the same time, each by a process of its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from chakra_et.conversion import Conversion, Options, PathLike, convert_one
from chakra_et.conversions import Conversions, with_others
from chakra_et.errors import ChakraError
from chakra_et.io.output import is_standard_output, make_directory
from chakra_et.io.protected import inputs_protected, refuse_input
from chakra_et.linker.window import window
from chakra_et.pairing import Pair, find_pairs

if TYPE_CHECKING:
    from chakra_et.jobs.crew import Step
    from chakra_et.jobs.executors import Executor

_SHOWN: Final = 5
"""So many pairs are named in an error."""
_FILE_SUFFIXES: Final = (".et", ".json", ".gz", ".zst")


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
            return with_others([_convert_to_file(target, pairs[0], options)], others)
        # One pair needs none of it, and starts sooner without.
        from chakra_et.jobs.run import convert_run

        return convert_run(
            pairs,
            others,
            target,
            options,
            prefix=prefix,
            jobs=jobs,
            force=force,
            step=step,
            resume=resume,
            keep_going=keep_going,
            shard=shard,
            executor=executor,
        )


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
    from chakra_et.jobs.run import merge_run

    return merge_run(
        Path(output), prefix=prefix, jobs=jobs, force=force, step=step, executor=executor
    )


def convert_directory(
    directory: PathLike, output_directory: PathLike | None, **options: Any
) -> Conversions:
    """All ranks of a directory; options are those of `convert_files`."""
    return convert_files(directory, output_directory, **options)


def names_a_file(output: Path) -> bool:
    """Whether an output is one file: by its name, or because a file of that name is there."""
    named = output.suffix in _FILE_SUFFIXES or output.exists() or is_standard_output(output)
    # Asked last: another process may make the directory meanwhile, as racing shards do.
    return named and not output.is_dir()


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
