"""Where traces of one or several ranks are written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from chakra_et.cli.progress import working
from chakra_et.directory import names_a_file
from chakra_et.errors import ChakraError
from chakra_et.files import write
from chakra_et.io.output import make_directory
from chakra_et.model import Trace
from chakra_et.run_directory import run_directory


def write_ranks(
    traces: Mapping[int, Trace], output: Path, names: Mapping[int, str], prefix: str, force: bool
) -> None:
    """Write one trace to a file, if OUT is the name of one; else a file of each rank.

    Raises ChakraError where several ranks do not fit one file, OutputError where ranks of another
    run are in the way.
    """
    if names_a_file(output):
        if len(traces) > 1:
            raise ChakraError(
                f"this names one file, but the traces have {len(traces)} ranks",
                path=output,
                remedy="Name a directory.",
            )
        make_directory(output.parent)
        with working("writing"):
            write(next(iter(traces.values())), output)
        return
    with working("writing") as step, run_directory(output, prefix, force) as run:
        for done, (rank, trace) in enumerate(traces.items()):
            step(done, len(traces))
            write(trace, run.path(names[rank]))


def expect_directory(output: Path) -> None:
    """Raises ChakraError for the name of a file, where there will be a file for each rank."""
    if names_a_file(output):
        raise ChakraError(
            "expected a directory for one file of each rank, got a file name",
            path=output,
            remedy="Name a directory.",
        )
