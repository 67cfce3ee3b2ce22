"""`chakra audit`: what could still leak from a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.cli.findings import FailOn, Format, put_findings
from chakra_et.cli.progress import working
from chakra_et.loading import load

EXAMPLES: Final = {
    "audit": (
        ("chakra audit OUT", "texts, paths, models that shapes tell"),
        ("chakra audit OUT --against DIR", "what links it to the original, too"),
        ("chakra audit OUT --format sarif -o findings.sarif", "for a code host"),
    ),
}


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
    put_findings(result, fmt, output, examples)
    least = fail_on.severity
    if least is not None and result.exit_code(least):
        raise typer.Exit(1)
