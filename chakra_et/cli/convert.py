"""`chakra convert`: recordings in, ETs out."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from chakra_et.cli.outputs import expect_apart, expect_directory
from chakra_et.cli.progress import working
from chakra_et.cli.show_report import show_conversions, show_failures
from chakra_et.cli.targets import (
    ForceOption,
    HostTime,
    HostTimeOption,
    PrefixOption,
    QuietOption,
    Target,
    TargetOption,
    VerboseOption,
)
from chakra_et.cli.terminal import console_for, plain_or_console, say
from chakra_et.cli.window import AnnotationOption, StepsOption
from chakra_et.conversion import Conversion, convert, trace_set
from chakra_et.conversions import Conversions
from chakra_et.directory import convert_files, names_a_file
from chakra_et.errors import ChakraError
from chakra_et.io.output import is_standard_output, write_json
from chakra_et.shown import number_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chakra_et.jobs.executors import Executor
    from chakra_et.passes import Cured

ExecutorOption = Annotated[
    str | None,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="Convert on a cluster: ray or dask starts one of this machine, ray=ADDRESS or "
        "dask=ADDRESS uses yours.",
        show_default=False,
    ),
]
EXAMPLES: Final = {
    "convert": (
        ("chakra convert host.json device.json -o trace.0.et", "one rank, in any order"),
        ("chakra convert DIR -o OUT", "all ranks of a run, also below DIR or in an archive"),
        ("chakra convert DIR -o OUT --resume", "go on where an earlier run was ended"),
        ("chakra convert DIR --for astra-sim -o OUT", "ready for the simulator"),
        ("chakra convert trace.0.et -o trace.0.json", "an ET as JSON, and back"),
        ("zcat profile.json.gz | chakra convert - -o trace.et.zst", "through a pipe"),
    ),
}


def convert_command(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="Host traces, profiles, linked traces and ETs, recognised by content; directories "
            "and archives of them; - is standard input.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="A file (.et or .json, with .gz or .zst compressed), - for standard output, or a "
            "directory that gets a file for each rank.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        Path | None,
        typer.Option("--host", metavar="FILE", help="A PyTorch host trace.", show_default=False),
    ] = None,
    device: Annotated[
        Path | None,
        typer.Option("--device", metavar="FILE", help="A Kineto profile.", show_default=False),
    ] = None,
    rank: Annotated[
        int | None,
        typer.Option(
            "--rank", metavar="R", min=0, help="The rank, if no file states it.", show_default=False
        ),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse damaged input instead of repairing it."),
    ] = False,
    steps: StepsOption = None,
    annotation: AnnotationOption = None,
    align_clocks: Annotated[
        bool,
        typer.Option(
            "--align-clocks", help="Shift times of devices whose clock is behind the host's."
        ),
    ] = False,
    jobs: Annotated[
        str,
        typer.Option(
            "--jobs",
            metavar="N",
            help="Ranks to convert in parallel; auto is one for each core. Fewer run while memory "
            "has no room for more.",
        ),
    ] = "auto",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Keep the ranks that an earlier run, even one that was killed, converted to OUT "
            "from the same files with the same options.",
        ),
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Only every N-th rank, this one the I-th of N: each on a machine of its own, with "
            "a file system that all share. `chakra merge OUT` makes the run of them.",
            show_default=False,
        ),
    ] = None,
    executor: ExecutorOption = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write the whole report as JSON.",
            show_default=False,
        ),
    ] = None,
    target: TargetOption = None,
    host_time: HostTimeOption = HostTime.FOLD,
    prefix: PrefixOption = None,
    force: ForceOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make ETs of recordings, or write ETs in another form.

    A host trace and the profile of the same run become one ET; either may be missing. Each
    conversion ends in a report of what became of every input record. A rank that cannot be
    converted is named at the end, with exit code 1; all others are written.
    """
    if output is None:
        raise ChakraError("no output", remedy="Say where to write with -o OUT.")
    if target is not None:
        expect_directory(output)
        _refuse_shards(shard)
    expect_apart("--report", report, output, [host, device, *(files or ())])
    workers = workers_asked(jobs)
    if files:
        _refuse_named_files(host, device)
    else:
        _refuse_for_pairs(
            jobs=workers,
            resume=resume or None,
            shard=shard,
            executor=executor,
            prefix=None if target is not None else prefix,
        )
    options: Any = {
        "rank": rank,
        "strict": strict,
        "steps": steps,
        "annotation": annotation,
        "align_clocks": align_clocks,
    }
    written = None if target is not None else output
    name = prefix or "trace"
    with working("converting", lines=not quiet) as step, _executor(executor, workers) as cluster:
        if files:
            conversions = convert_files(
                files,
                written,
                prefix=name,
                jobs=workers,
                force=force,
                skip=output,
                step=step,
                resume=resume,
                keep_going=True,
                shard=shard,
                executor=cluster,
                **options,
            )
        else:
            conversions = Conversions([convert(host, device, written, **options)], [])
    cured = None if target is None else _cure(conversions, output, name, target, host_time, force)
    if report is not None:
        alone = not files or (target is None and names_a_file(output))
        write_json(_content(conversions, cured, alone), report)
    if not quiet:
        taken = any(is_standard_output(path) for path in (output, report) if path is not None)
        _show(taken, conversions, cured, output, shard, verbose)
    show_failures(conversions)
    if conversions.failures or (cured is not None and cured.left.exit_code()):
        raise typer.Exit(1)


@contextmanager
def _executor(asked: str | None, workers: int | None) -> Iterator[Executor | None]:
    """The executor that is asked for; None for workers of this machine."""
    if asked is None:
        yield None
        return
    from chakra_et.jobs.clusters import cluster_executor

    with cluster_executor(asked, workers) as found:
        yield found


def workers_asked(text: str) -> int | None:
    """The number of workers that `--jobs` asks for; None for auto. Raises ChakraError."""
    if text == "auto":
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ChakraError(
            f"--jobs {text}: expected auto, or 1 or more", remedy="Give --jobs 1, or more."
        )
    return int(text)


def _refuse_named_files(*named: Path | None) -> None:
    """Raises ChakraError for files that are named by an option, beside files that are not."""
    if any(path is not None for path in named):
        raise ChakraError(
            "both FILE and --host or --device",
            remedy="Give only files, which are recognised by content, or name each with an option.",
        )


def _refuse_shards(shard: str | None) -> None:
    """Raises ChakraError for a shard, where all ranks are needed."""
    if shard is not None:
        raise ChakraError(
            "--for needs all ranks", remedy="Convert and merge the shards, then run chakra fix."
        )


def _refuse_for_pairs(**options: Any) -> None:
    """Raises ChakraError for options that say nothing about one pair that is named."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ChakraError(
            f"--{given[0]} is for several ranks", remedy="Leave it out with --host and --device."
        )


def _content(conversions: Conversions, cured: Cured | None, alone: bool) -> dict[str, Any]:
    """What `--report` writes: one report, or a list of them, and what was cured."""
    reports = [conversion.report.as_dict() for conversion in conversions]
    content = reports[0] if alone else {"conversions": reports}
    if conversions.failures:
        content["failures"] = [failure.as_dict() for failure in conversions.failures]
    return content if cured is None else {**content, "cures": cured.as_dict()}


def _cure(
    conversions: list[Conversion],
    output: Path,
    prefix: str,
    target: Target,
    host_time: HostTime,
    force: bool,
) -> Cured:
    """Write what a consumer can run: what was changed for it, and what is in its way."""
    # Passes and rules are imported only here: most conversions do without them.
    from chakra_et.passes import cure, write_for_astra_sim

    with working("curing"):
        cured = cure(trace_set(conversions), target.value, host=host_time.value)
        write_for_astra_sim(cured.traces, output, prefix, force)
    return cured


def _show(
    stderr: bool,
    conversions: Conversions,
    cured: Cured | None,
    output: Path,
    shard: str | None,
    verbose: bool,
) -> None:
    """What became of every record; of a shard, how many ranks it has."""
    console = plain_or_console(stderr=stderr)
    if shard is not None:
        count = number_of(len(conversions), "rank")
        say(console, f"shard {shard}: {count}; chakra merge {output} when all are done", "bold")
    else:
        show_conversions(console, conversions, verbose)
    if cured is not None:
        from chakra_et.cli.fix import show_cures

        say(console, f"{output}:", "bold")
        show_cures(console_for(stderr=stderr), cured)
