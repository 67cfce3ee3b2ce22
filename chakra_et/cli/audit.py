"""`chakra audit`: what could still leak from a trace."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.cli.progress import working
from chakra_et.io.output import atomic_output
from chakra_et.loading import load
from chakra_et.validators import Severity
from chakra_et.validators.output import FORMATS, render, show

EXAMPLES: Final = {
    "audit": (
        ("chakra audit OUT", "texts, paths, models that shapes tell"),
        ("chakra audit OUT --against DIR", "what links it to the original, too"),
        ("chakra audit OUT --format sarif -o findings.sarif", "for a code host"),
    ),
}


class Format(str, Enum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"
    JUNIT = "junit"


class FailOn(str, Enum):
    """The least severity that makes the exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"


def audit_command(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="The ETs that are to be given away.")
    ],
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="ORIGINAL", help="What they were made from, to find links.", show_default=False
        ),
    ] = None,
    fmt: Annotated[Format, typer.Option("--format", "-f", help="How to print.")] = Format.TEXT,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to, if not to the terminal."),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="The least severity that fails.")
    ] = FailOn.ERROR,
    examples: Annotated[
        int, typer.Option("--examples", metavar="N", help="Findings shown of each check.", min=1)
    ] = 3,
) -> None:
    """Say what could still leak: texts, paths, unknown fields, shapes of public models, links.

    Exit code 1: findings at or above --fail-on. docs/anonymise.md explains the checks.
    """
    from chakra_et.audit import audit

    with working("reading"):
        traces = load([source])
        originals = None if against is None else load([against])
    with working("auditing"):
        result = audit(traces, originals, dict.fromkeys(traces, source))
    if fmt is Format.TEXT and output is None:
        show(result, examples)
    else:
        with atomic_output(Path("-") if output is None else output) as stream:
            stream.write(render(result, FORMATS[fmt.value], examples).encode())
    least = None if fail_on is FailOn.NEVER else Severity[fail_on.name]
    if least is not None and result.exit_code(least):
        raise typer.Exit(1)
