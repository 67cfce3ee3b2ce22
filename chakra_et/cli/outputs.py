"""Where traces of one or several ranks are written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from chakra_et.cli.progress import working
from chakra_et.directory import names_a_file
from chakra_et.errors import ChakraError, OutputError
from chakra_et.files import write
from chakra_et.io.output import is_standard_output, make_directory
from chakra_et.io.protected import inputs_protected, refuse_input
from chakra_et.model import Trace
from chakra_et.urls import url_of


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
    # Most commands write one file, and start sooner without.
    from chakra_et.run_directory import run_directory

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


def expect_apart(
    option: str, second: Path | None, output: Path | None, inputs: Iterable[Path | None]
) -> None:
    """Refuse, before the work, a second output that could not be written, or not beside `output`.

    Its directory is there, or is made for `output`, and it is none of the inputs that are named.
    Raises ChakraError.
    """
    if second is None or is_standard_output(second) or url_of(second) is not None:
        return
    with inputs_protected(*inputs):
        refuse_input(second)
    if output is not None and _place(second) == _place(output):
        raise ChakraError(
            f"{option} and the output are one file", path=second, remedy="Name two files."
        )
    if second.is_dir():
        raise OutputError("this is a directory", path=second, remedy="Name a file in it.")
    parent = second.parent
    made = () if output is None else (_place(output), _place(output.parent))
    if not parent.is_dir() and _place(parent) not in made:
        raise OutputError(
            f"cannot be created: there is no directory {parent}",
            path=second,
            remedy="Check the path, or make that directory first.",
        )
    if parent.is_dir() and not second.exists() and not os.access(parent, os.W_OK):
        raise OutputError(
            "cannot be created: its directory is not writable",
            path=second,
            remedy="Name a file in another directory.",
        )


def _place(path: Path) -> str:
    # Path.resolve raises RuntimeError for links that lead to themselves, before Python 3.13.
    return os.path.realpath(path)
