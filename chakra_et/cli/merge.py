"""`chakra merge`: a run of the shards that were converted apart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.cli.convert import workers_asked
from chakra_et.cli.progress import working
from chakra_et.cli.show_report import show_conversions, show_failures
from chakra_et.cli.targets import ForceOption, PrefixOption, QuietOption, VerboseOption
from chakra_et.cli.terminal import console_for
from chakra_et.directory import merge_shards

EXAMPLES: Final = {
    "merge": (("chakra merge OUT --jobs 2", "after chakra convert DIR -o OUT --shard 1/8 to 8/8"),),
}


def merge_command(
    output: Annotated[
        Path, typer.Argument(metavar="OUT", help="The directory that all shards were given.")
    ],
    jobs: Annotated[
        str,
        typer.Option(
            "--jobs", metavar="N", help="Ranks to convert again in parallel; auto is as in convert."
        ),
    ] = "auto",
    prefix: PrefixOption = None,
    force: ForceOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
) -> None:
    """Make a run of shards: its traces appear in OUT when all ranks are there.

    Ranks learn of each other now; those that learn something are converted again. Exit code 1
    says that ranks could not be converted; all others are written.
    """
    with working("merging", lines=not quiet) as step:
        conversions = merge_shards(
            output, prefix=prefix or "trace", jobs=workers_asked(jobs), force=force, step=step
        )
    if not quiet:
        show_conversions(console_for(), conversions, verbose)
    show_failures(conversions)
    if conversions.failures:
        raise typer.Exit(1)
