"""`chakra convert`: host trace and profile in, an ET out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from chakra_et.cli.show import show_conversion
from chakra_et.cli.targets import HOST_HELP, TARGET_HELP, HostTime, PrefixOption, Target
from chakra_et.conversion import Conversion, convert, trace_set
from chakra_et.directory import convert_directory
from chakra_et.errors import ChakraError
from chakra_et.inputs import is_linked
from chakra_et.io.output import write_json


def convert_command(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="A directory or archive of host traces and profiles, paired by process and rank; "
            "or a trace that another tool has linked.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="The ET to write (.et, or .json; .gz and .zst compress); with DIR, a directory.",
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
        typer.Option("--rank", metavar="R", help="The rank, if no file tells.", show_default=False),
    ] = None,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Refuse damaged input instead of mending it."),
    ] = False,
    steps: Annotated[
        str | None,
        typer.Option(
            "--steps", metavar="A..B", help="Only these profiler steps.", show_default=False
        ),
    ] = None,
    annotation: Annotated[
        str | None,
        typer.Option(
            "--annotation",
            metavar="NAME",
            help="Only what lies within this annotation.",
            show_default=False,
        ),
    ] = None,
    align_clocks: Annotated[
        bool,
        typer.Option(
            "--align-clocks", help="Shift times of devices whose clock is behind the host's."
        ),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            metavar="N",
            help="With DIR, ranks at the same time; by default as cores and memory allow.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="Write the whole report as JSON.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        Target | None,
        typer.Option("--for", help=TARGET_HELP + " OUT is then a directory.", show_default=False),
    ] = None,
    host_time: Annotated[HostTime, typer.Option("--host-time", help=HOST_HELP)] = HostTime.FOLD,
    prefix: PrefixOption = None,
) -> None:
    """Link a PyTorch host trace and the Kineto profile of the same run into one ET.

    Either may be missing. Each conversion ends in a report of what became of every input record.
    """
    if output is None:
        raise ChakraError("no output", remedy="Say where to write with -o OUT.")
    if directory is not None and host is None and directory.is_file() and is_linked(directory):
        # A pair in one file, not a directory of them.
        host, directory = directory, None
    if directory is not None and (host or device or rank is not None):
        raise ChakraError(
            "both a directory and single files", remedy="Give DIR, or --host and --device."
        )
    if directory is None and jobs is not None:
        raise ChakraError("--jobs is about the ranks of a directory", remedy="Leave it out.")
    if directory is not None or target is not None:
        _expect_directory(output)
    elif prefix is not None:
        raise ChakraError(
            "--prefix for a single file", remedy="OUT is its name; prefixes are for directories."
        )
    name = prefix or "trace"
    options: Any = {
        "strict": strict,
        "steps": steps,
        "annotation": annotation,
        "align_clocks": align_clocks,
    }
    written = None if target is not None else output
    if directory is not None:
        conversions = convert_directory(directory, written, prefix=name, jobs=jobs, **options)
        content: Any = {"conversions": [c.report.as_dict() for c in conversions]}
    else:
        conversions = [convert(host, device, written, rank=rank, **options)]
        content = conversions[0].report.as_dict()
    console = Console(highlight=False)
    sound = True
    if target is not None:
        content["cures"], sound = _cure(console, conversions, output, name, target, host_time)
    if report is not None:
        write_json(content, report)
    for conversion in conversions:
        show_conversion(console, conversion)
    if not sound:
        raise typer.Exit(1)


def _expect_directory(output: Path) -> None:
    """Raises ChakraError for the name of a file, where there will be a file for each rank."""
    if output.suffix in (".et", ".json", ".gz", ".zst") and not output.is_dir():
        raise ChakraError(
            "this is the name of a file, where one for each rank is written to a directory",
            path=output,
            remedy="Name a directory; or convert one pair, with --host and --device.",
        )


def _cure(
    console: Console,
    conversions: list[Conversion],
    output: Path,
    prefix: str,
    target: Target,
    host_time: HostTime,
) -> tuple[Any, bool]:
    """Write what a consumer can run: what was changed for it, and whether nothing is in its way."""
    # Passes and rules are imported only here: most conversions do without them.
    from chakra_et.cli.fix import show_cures
    from chakra_et.passes import cure, write_for_astra_sim
    from chakra_et.validators import Severity

    cured = cure(trace_set(conversions), target.value, host=host_time.value)
    write_for_astra_sim(cured.traces, output, prefix)
    show_cures(console, cured)
    return cured.as_dict(), not cured.left.count(Severity.ERROR)
