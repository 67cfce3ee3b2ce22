"""Which part of a recording: options that verbs share."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

StepsOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--steps", metavar="A..B", help="Only these profiler steps.", show_default=False),
]
AnnotationOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--annotation",
        metavar="NAME",
        help="Only what lies within this annotation.",
        show_default=False,
    ),
]
