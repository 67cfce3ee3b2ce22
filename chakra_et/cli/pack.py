"""`chakra pack` and `chakra unpack`: the ETs of many ranks in one file, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.cli.progress import working
from chakra_et.cli.targets import ForceOption, PrefixOption, QuietOption
from chakra_et.cli.terminal import console_for, say, size
from chakra_et.errors import ChakraError
from chakra_et.pack import pack, unpack
from chakra_et.shown import number_of

EXAMPLES: Final = {
    "pack": (("chakra pack DIR -o run.pack", "all ranks in one file"),),
    "unpack": (
        ("chakra unpack run.pack -o DIR", "the same files again"),
        ("chakra unpack run.pack -o DIR --ranks 0-1", "of some ranks"),
    ),
}


def pack_command(
    source: Annotated[Path, typer.Argument(metavar="DIR", help="The ETs of a run.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The packed file.")
    ],
    prefix: PrefixOption = None,
    quiet: QuietOption = False,
) -> None:
    """Pack the ETs of many ranks into one file, as small as they are alike.

    What a class of ranks has in common is kept once, and what each differs in beside it. Every rank
    comes back byte for byte, and can be read without the others.
    """
    with working("packing", lines=not quiet) as step:
        packed = pack(source, output, prefix=prefix or "trace", step=step)
    if quiet:
        return
    factor = packed.et_bytes / max(packed.file_bytes, 1)
    alone = f", {packed.as_bytes} kept as bytes" if packed.as_bytes else ""
    classes = number_of(packed.classes, "class").replace("classs", "classes")
    say(
        console_for(),
        f"{output}: {number_of(packed.ranks, 'rank')} in {classes}{alone}; "
        f"{size(packed.et_bytes)} in {size(packed.file_bytes)}, {factor:.1f} times smaller",
    )


def unpack_command(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A packed file.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="A directory.")],
    ranks: Annotated[
        str | None,
        typer.Option("--ranks", metavar="LIST", help="Which ranks, as in 0-7,64; by default all."),
    ] = None,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write the ETs of a packed file: byte for byte what was packed."""
    chosen = None if ranks is None else ranks_in(ranks)
    with working("unpacking", lines=not quiet) as step:
        files = unpack(source, output, ranks=chosen, force=force, step=step)
    if not quiet:
        say(console_for(), f"{output}: {number_of(len(files), 'rank')}")


def ranks_in(text: str) -> list[int]:
    """The numbers that a list like `0-7,64` names. Raises ChakraError."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        numbers = first.isdecimal() and (last or first).isdecimal()
        named = range(int(first), int(last or first) + 1) if numbers else range(0)
        if not named:
            raise ChakraError(f"{text!r} is not a list of ranks", remedy="Write it like 0-7,64.")
        found += named
    return found
