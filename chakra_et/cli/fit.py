"""`chakra fit`: a table of kernel times, from recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.cli.progress import working
from chakra_et.cli.tables import show
from chakra_et.cli.terminal import console_for, say
from chakra_et.errors import ChakraError
from chakra_et.loading import load
from chakra_et.shown import number_of

EXAMPLES: Final = {
    "fit": (
        ("chakra fit resnet/ bert/ dlrm8/ -o a100.json", "a table of three models"),
        ("chakra fit run/ -o table.json --top 0", "of one model, with the error of every operator"),
    ),
}


def fit_command(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="IN", help="ETs or recordings, each of one model.", show_default=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="TABLE", help="The table, JSON."),
    ],
    top: Annotated[
        int, typer.Option("--top", metavar="N", min=0, help="Operators to show, 0 for all.")
    ] = 20,
) -> None:
    """Make a table of how long operators, kernels and transfers take, by what they work on.

    Prints how far the table can be trusted: each model is foretold by a table of the others.
    docs/kernel-times.md explains the file and the figures.
    """
    from chakra_et.kerneltimes.files import write_samples
    from chakra_et.kerneltimes.leaving_out import errors_table
    from chakra_et.kerneltimes.samples import Samples, samples_of

    found = []
    for source, model in zip(sources, _models(sources), strict=True):
        with working(f"reading {model}"):
            found.append(samples_of(load([source]), model))
    samples = Samples.joined(found)
    if not samples.total_ns.any():
        raise ChakraError(
            "no calls with times in these files",
            remedy="Give recordings with a profile: a host trace alone has no times.",
        )
    with working("leaving out"):
        errors = errors_table(samples)
    write_samples(samples, output)
    console = console_for()
    calls = number_of(int(samples.count.sum()), "call")
    say(console, f"{output}: {calls}, {number_of(len(samples), 'row')}")
    show(console, errors, top, "--top 0 has all")


def _models(sources: list[Path]) -> list[str]:
    """What each model is called: the name of its file or directory, or all of the path."""
    names = [source.resolve().name for source in sources]
    return [
        name if names.count(name) == 1 else str(source)
        for name, source in zip(names, sources, strict=True)
    ]
