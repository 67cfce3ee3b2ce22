"""`chakra validate`: will it run, and if not, which node?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.cli.findings import FailOn, Format, put_findings
from chakra_et.cli.outputs import expect_apart
from chakra_et.cli.progress import working
from chakra_et.errors import ChakraError
from chakra_et.validators import PROFILES, validate
from chakra_et.validators.baseline import accept, read_baseline, write_baseline

EXAMPLES: Final = {
    "validate": (
        ("chakra validate trace.0.et", "the rules of the format"),
        ("chakra validate DIR --profile astra-sim", "will the simulator run it?"),
        ("chakra validate DIR --format sarif -o findings.sarif", "for a code host"),
        ("chakra validate DIR --write-baseline known.json", "accept what is found from now on"),
        ("chakra validate DIR --baseline known.json", "report only what is new"),
    ),
    "explain": (
        ("chakra explain ET102", "what a rule detects, and the fix"),
        ("chakra explain --profile astra-sim", "the rules of a profile"),
    ),
}


def validate_command(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="ETs, host traces, profiles, or directories of them; files of one directory "
            "whose names differ by the rank are checked as one run.",
            show_default=False,
        ),
    ],
    profile: Annotated[
        str,
        typer.Option("--profile", "-p", metavar="NAME", help=f"One of {', '.join(PROFILES)}."),
    ] = "core",
    fmt: Annotated[Format, typer.Option("--format", "-f", help="How to print.")] = Format.TEXT,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to this file instead of the terminal."
        ),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Lowest severity that fails.")
    ] = FailOn.ERROR,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Accept the findings in this file."),
    ] = None,
    save_baseline: Annotated[
        Path | None,
        typer.Option(
            "--write-baseline",
            metavar="FILE",
            help="Write what is found now to this file, to accept it later.",
        ),
    ] = None,
    skip_others: Annotated[
        bool, typer.Option("--skip-others", help="Skip files that are not traces.")
    ] = False,
    examples: Annotated[
        int, typer.Option("--examples", metavar="N", help="Findings to show of each rule.", min=1)
    ] = 3,
) -> None:
    """Check traces against the rules of a consumer.

    Exit code 0: clean. 1: findings at or above --fail-on. 2: something could not be read.
    """
    expect_apart("--write-baseline", save_baseline, output, [*paths])
    with working("checking"):
        result = validate(paths, profile, skip_others=skip_others)
    if baseline is not None:
        accept(result, read_baseline(baseline))
    if save_baseline is not None:
        write_baseline(result, save_baseline)
    put_findings(result, fmt, output, examples)
    for error in result.unreadable:
        if fmt is not Format.TEXT:
            typer.echo(f"error: {error}", err=True)
    if profile != "core" and not result.traces and not result.unreadable:
        typer.echo(
            f"note: none of these files is an ET, and {profile!r} is about ETs: only their JSON "
            "was checked. Convert them first: chakra convert.",
            err=True,
        )
    # With a baseline written, what was found is accepted from now on.
    least = fail_on.severity if save_baseline is None else None
    code = 2 * bool(result.unreadable) if least is None else result.exit_code(least)
    if code:
        raise typer.Exit(code)


def explain_command(
    rule: Annotated[
        str | None,
        typer.Argument(metavar="[RULE]", help="A rule's id, such as ET102.", show_default=False),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option("--profile", "-p", metavar="NAME", help="List the rules of a profile."),
    ] = None,
) -> None:
    """Explain a rule: what it detects, what goes wrong because of it, and the fix."""
    from chakra_et.validators.output.text import show_rule, show_rules

    if rule is None:
        show_rules(profile)
        return
    if profile is not None:
        raise ChakraError("both a rule and a profile", remedy="Give one of them.")
    show_rule(rule.upper())
