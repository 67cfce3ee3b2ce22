"""`chakra anonymise`: traces to give away."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.cli.outputs import write_ranks
from chakra_et.cli.progress import working
from chakra_et.cli.targets import ForceOption, QuietOption
from chakra_et.cli.terminal import console_for, print_json, say
from chakra_et.errors import ChakraError
from chakra_et.loading import load

EXAMPLES: Final = {
    "anonymise": (
        ("chakra anonymise DIR --policy publish --key-file key -o OUT", "names, shapes, times"),
        ("chakra anonymise DIR --policy partner --key-file key -o OUT", "shapes and times stay"),
        ("chakra anonymise DIR --policy mine.toml --key-file key -o OUT", "a policy of your own"),
    ),
}
_SHORT: Final = 16
_VARIED: Final = 6
"""So many different bytes has every secret of `_SHORT` that is drawn at random."""
_LONG: Final = 1 << 16


def anonymise_command(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="ETs or recordings of a run: a file, a directory.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="OUT", help="A file, or a directory.")
    ],
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE",
            help="What may stay: partner, publish, coarse, or a TOML file.",
            show_default=False,
        ),
    ],
    key: Annotated[
        str | None,
        typer.Option(
            metavar="SECRET",
            envvar="CHAKRA_KEY",
            help="The secret that pseudonyms follow from; other users see it in process lists.",
            show_default=False,
        ),
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file with the secret.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the account as JSON.")] = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Keep only what a policy allows: names become pseudonyms, all that it does not name goes.

    Equal names get equal pseudonyms in all traces that are made with the same secret.
    docs/anonymise.md says what each policy protects, and what it does not.
    """
    from chakra_et.anonymise import anonymise, load_policy

    secret = _secret(key, key_file)
    chosen = load_policy(policy)
    if os.path.realpath(output) == os.path.realpath(source):
        raise ChakraError(
            "what is given away would lie among the originals",
            path=output,
            remedy="Name another directory.",
        )
    with working("reading"):
        traces = load([source])
    with working("anonymising"):
        done = anonymise(traces, chosen, secret)
    names = {rank: f"trace.{rank}.et" for rank in done.traces}
    write_ranks(done.traces, output, names, "trace", force)
    if as_json:
        print_json(done.as_dict())
    elif not quiet:
        console = console_for()
        say(console, output, "bold")
        for what, count in done.account.items():
            if count:
                say(console, f"  {what}: {count:,}")
        say(console, f"  does not protect: {' '.join(chosen.leaks.split())}")


def _secret(key: str | None, key_file: Path | None) -> bytes:
    if (key is None) == (key_file is None):
        raise ChakraError(
            "expected one of --key and --key-file",
            remedy="Make a secret with `openssl rand -hex 32 > key`, and keep it.",
        )
    try:
        secret = key.encode() if key_file is None and key is not None else _read(key_file)
    except OSError as error:
        raise ChakraError(f"{key_file}: {error.strerror}", remedy="Name a file.") from error
    if len(secret) < _SHORT:
        raise ChakraError(
            f"the secret has {len(secret)} bytes; short ones can be guessed",
            remedy=f"Give at least {_SHORT}, from `openssl rand -hex 32`.",
        )
    if len(set(secret)) < _VARIED or len(secret) > _LONG:
        raise ChakraError(
            f"the secret is no random one: {len(set(secret))} different bytes in {len(secret):,}",
            path=key_file,
            remedy="Make one with `openssl rand -hex 32 > key`.",
        )
    return secret


def _read(key_file: Path | None) -> bytes:
    assert key_file is not None
    with key_file.open("rb") as stream:
        return stream.read(_LONG + 1).strip()
