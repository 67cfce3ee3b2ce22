"""The command `chakra` and its verbs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from chakra_et import __version__
from chakra_et.cli.convert import convert_command
from chakra_et.cli.feed import feed_command
from chakra_et.cli.feeder import feeder_command
from chakra_et.cli.fix import fix_command
from chakra_et.cli.info import info_command
from chakra_et.cli.replay import ReplayCommand, replay_command
from chakra_et.cli.validate import explain_command, validate_command
from chakra_et.errors import ChakraError

app = typer.Typer(
    name="chakra",
    help="Execution traces of machine-learning workloads: convert, check, replay and feed them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"chakra-et {__version__}")
        raise typer.Exit


@app.callback()
def _chakra(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """What all verbs share."""


app.command("convert")(convert_command)
app.command("info")(info_command)
app.command("validate")(validate_command)
app.command("explain")(explain_command)
app.command("fix")(fix_command)
app.command("replay", cls=ReplayCommand)(replay_command)
app.command("feed")(feed_command)
app.command("feeder")(feeder_command)


def main() -> None:
    """Run the command line; errors that a user can act on are printed, without a traceback."""
    try:
        app()
    except ChakraError as error:
        Console(stderr=True, soft_wrap=True).print(f"error: {error}", style="red", markup=False)
        sys.exit(error.exit_code)
