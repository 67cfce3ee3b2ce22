"""`chakra collect`: record a training run that knows nothing of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.cli.progress import working
from chakra_et.cli.show_report import show_conversions
from chakra_et.cli.targets import QuietOption
from chakra_et.cli.terminal import console_for, say
from chakra_et.collection.converting import convert_recording
from chakra_et.collection.launch import launch
from chakra_et.collection.settings import Settings
from chakra_et.collection.summary import lines

CONTEXT: Final = {"allow_interspersed_args": False}
EXAMPLES: Final = {
    "collect": (
        ("chakra collect -o run -- python train.py", "three steps of one process"),
        ("chakra collect -o run -- torchrun --nproc-per-node 8 train.py", "of eight ranks"),
        ("chakra collect -o run --convert -- python -m project.train --lr 0.1", "and their ETs"),
        ("chakra collect -o run --steps 1 --warmup 20 -- python train.py", "step 21 alone"),
    ),
}


def collect_command(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND",
            help="The program and its arguments: python, torchrun, or a launcher of your own.",
            show_default=False,
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Where to write.", show_default=False),
    ],
    steps: Annotated[int, typer.Option("--steps", metavar="N", min=1, help="Steps to record.")] = 3,
    warmup: Annotated[
        int,
        typer.Option(
            "--warmup",
            metavar="N",
            min=0,
            help="Steps to skip first. The profiler warms up in the one after them.",
        ),
    ] = 2,
    memory: Annotated[
        bool, typer.Option("--memory", help="Record allocations too; the profile grows.")
    ] = False,
    stack: Annotated[
        bool, typer.Option("--stack", help="Record Python frames too; this is slow.")
    ] = False,
    convert: Annotated[
        bool, typer.Option("--convert", help="Convert what was recorded, to DIR/et.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the recordings of an earlier run in DIR.")
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Run a training script and record a few of its steps: host trace and profile of each rank.

    The script needs no change. A step ends when `step` of the optimizer returns (of the first one
    that steps, where there are several). Each process that steps is recorded as a rank, also under
    torchrun and other launchers. PyTorch 2.4 or later is needed. The files appear as soon as the
    steps are over, and the program goes on. DIR gets `host.RANK.json.gz`, `device.RANK.json.gz`
    and `manifest.RANK.json`.

    The exit code is that of the program, or 1 if it succeeded but nothing was recorded.
    """
    settings = Settings(
        str(output),
        steps=steps,
        warmup=warmup,
        memory=memory,
        stack=stack,
        force=force,
        until_step="optimizer.step",
    )
    outcome = launch(command, settings)
    console = console_for(stderr=True)
    for manifest in outcome.manifests if not quiet else ():
        for text in lines(manifest, manifest["problems"]):
            say(console, text)
    for text in outcome.problems:
        say(console, f"warning: {text}", "yellow")
    if convert and outcome.manifests:
        with working("converting") as step:
            conversions = convert_recording(output, force, step)
        if not quiet:
            show_conversions(console_for(), conversions)
    raise typer.Exit(outcome.exit_code or int(not outcome.manifests))
