"""`chakra estimate`: how long a step would take on a machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from chakra_et.cli.plan_options import with_plan
from chakra_et.cli.progress import working
from chakra_et.cli.terminal import console_for, print_json, say, show_rows
from chakra_et.errors import ChakraError
from chakra_et.estimate import (
    ROOFLINE,
    Case,
    Estimate,
    Machine,
    case_of_plan,
    copies_of_set,
    load_constants,
)
from chakra_et.network import load_topology, topology_names
from chakra_et.shown import number_of
from chakra_et.workloads.durations import device, devices
from chakra_et.workloads.plan import Plan

EXAMPLES: Final = {
    "estimate": (
        ("chakra estimate DIR", "a set on disk, on A100s"),
        ("chakra estimate --model llama2-70b --tp 8 --pp 4 --dp 4", "a plan, without writing it"),
        ("chakra estimate DIR --device h100 --network cluster.toml", "another machine"),
        ("chakra estimate DIR --peaks", "the least that it can take"),
    ),
}


@with_plan
def estimate_command(
    plan: Plan | None = None,
    source: Annotated[
        Path | None,
        typer.Argument(metavar="IN", help="A set on disk: a directory, or a packed set."),
    ] = None,
    device_name: Annotated[
        str, typer.Option("--device", help=f"What runs it: {', '.join(devices())}.")
    ] = "a100",
    network: Annotated[
        str,
        typer.Option(metavar="NAME|FILE", help=f"{', '.join(topology_names())}, or a TOML file."),
    ] = "dgx-a100",
    constants: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Constants, a TOML file. Default: fitted on A100s.",
            show_default=False,
        ),
    ] = None,
    peaks: Annotated[
        bool, typer.Option("--peaks", help="No constants: peak rates and the network alone.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Estimate how long a step takes: of a set on disk, or of a plan as `generate llm` takes it.

    The graph is replayed with a roofline of the device, a model of the network and a few constants
    that were fitted to measured steps. What comes from which is told.
    """
    if (source is None) == (plan is None):
        raise ChakraError(
            "one set is wanted, on disk or as a plan", remedy="Give IN, or --model NAME."
        )
    if peaks and constants is not None:
        raise ChakraError("--peaks and --constants", remedy="Give one of them.")
    chosen = ROOFLINE if peaks else load_constants(constants)
    machine = Machine(device(device_name), load_topology(network), chosen)
    with working("estimating"):
        case = (
            case_of_plan(plan, machine)
            if plan is not None
            else Case(copies_of_set(source or Path()), machine)
        )
        done = case.estimate()
    if as_json:
        print_json(done.as_dict())
    else:
        _show(console_for(), done, machine)


def _show(console: Console, done: Estimate, machine: Machine) -> None:
    """The step, where its time comes from, and what it is spent on."""
    ranks = number_of(done.world_size, "rank")
    say(console, f"{done.step_ns / 1e6:,.3f} ms a step, {ranks} of {machine.device.name}")
    step = done.step_ns or 1
    say(console, "the critical path, by where its times come from:")
    show_rows(console, [(f"{ns / step:6.1%}", what) for what, ns in done.path_ns.items() if ns])
    say(console, "and by what it does:")
    show_rows(console, [(f"{ns / step:6.1%}", what) for what, ns in done.work_ns.items()])
