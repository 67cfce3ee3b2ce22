"""`chakra feeder`: where the C++ feeder lies, and how a simulator takes it in."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.errors import ChakraError
from chakra_et.feeder import native

EXAMPLES: Final = {
    "feeder": (
        ("chakra feeder --cmake-dir", "for CMAKE_PREFIX_PATH"),
        ("chakra feeder --include-dir", "for the -I of a compiler"),
        ("chakra feeder --facade astra-sim --into SIM/extern/chakra", "put it into a simulator"),
    ),
}


class FacadeChoice(str, Enum):
    """Whose names to take."""

    ASTRA_SIM = "astra-sim"
    MLCOMMONS = "mlcommons"


def feeder_command(
    cmake_dir: Annotated[
        bool, typer.Option("--cmake-dir", help="Print the folder for CMAKE_PREFIX_PATH.")
    ] = False,
    include_dir: Annotated[
        bool, typer.Option("--include-dir", help="Print the folder of the headers.")
    ] = False,
    source_dir: Annotated[
        bool, typer.Option("--source-dir", help="Print the folder with the C interface's source.")
    ] = False,
    facade: Annotated[
        FacadeChoice | None,
        typer.Option(help="Install a drop-in replacement in the folder given by --into."),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(help="The simulator's chakra folder: the one that holds src/ and schema/."),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="With --facade: replace files without asking.")
    ] = False,
) -> None:
    """Find the C++ feeder, or install it in place of a simulator's own."""
    if facade is not None:
        if into is None:
            raise ChakraError(
                "--facade needs --into", remedy="Add --into DIR, the simulator's chakra folder."
            )
        _ask(native.foreign_files(facade.value, into), yes)
        for path in native.install_facade(facade.value, into):
            typer.echo(path)
        return
    asked = [
        folder
        for wanted, folder in (
            (cmake_dir, native.CMAKE_DIR),
            (include_dir, native.INCLUDE_DIR),
            (source_dir, native.SOURCE_DIR),
        )
        if wanted
    ]
    if not asked:
        raise ChakraError("no option given", remedy="See chakra feeder --help.")
    for folder in asked:
        typer.echo(folder)


def _ask(files: list[Path], yes: bool) -> None:
    """Let the user decide about files that would be replaced. Raises ChakraError for a no."""
    if not files or yes:
        return
    folder = files[0].parent
    if sys.stdin.isatty():
        question = f"Replace {len(files)} files, such as {files[0]}?"
        if typer.confirm(question, err=True):
            return
        raise ChakraError("nothing was changed", path=folder)
    raise ChakraError(
        f"{len(files)} files here would be replaced ({files[0].name} and more)"
        if len(files) > 1
        else f"{files[0].name} would be replaced",
        path=folder,
        remedy="Add --yes to replace them.",
    )
