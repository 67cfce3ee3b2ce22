"""Consumers that output can be made ready for: options that verbs share."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, TypeAlias

import typer

from chakra_et.errors import ChakraError


class Target(str, Enum):
    """Consumers that traces can be made ready for."""

    ASTRA_SIM = "astra-sim"


class HostTime(str, Enum):
    """What becomes of host nodes."""

    FOLD = "fold"
    KEEP = "keep"


TargetOption: TypeAlias = Annotated[
    Target | None,
    typer.Option(
        "--for",
        help="Make the output ready for a consumer: a directory with {prefix}.{rank}.et and "
        "comm_groups.json.",
        show_default=False,
    ),
]
HostTimeOption: TypeAlias = Annotated[
    HostTime,
    typer.Option(
        "--host-time",
        help="With --for: fold host time into idle time of the device (then the simulator's "
        "statistics work), or keep host nodes.",
    ),
]


def _part_of_a_name(prefix: str | None) -> str | None:
    if prefix is None:
        return None
    from chakra_et.run_directory import is_part_of_a_name

    if not is_part_of_a_name(prefix):
        raise ChakraError(
            f"--prefix {prefix!r} cannot be part of a file name",
            remedy="Name the directory with -o.",
        )
    return prefix


PrefixOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--prefix",
        metavar="NAME",
        help="Prefix of the file names: {prefix}.{rank}.et.",
        callback=_part_of_a_name,
        show_default=False,
    ),
]
ForceOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--force", help="Remove ranks of an earlier run from OUT, if its manifest lists them."
    ),
]
VerboseOption: TypeAlias = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show the whole report.")
]
QuietOption: TypeAlias = Annotated[bool, typer.Option("--quiet", "-q", help="Show no report.")]
