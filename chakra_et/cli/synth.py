"""`chakra synth`: models of workloads, samples of them, and how alike two sets are."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from chakra_et.cli.outputs import expect_directory
from chakra_et.cli.progress import working
from chakra_et.cli.tables import Form, FormOption, OutOption, put_table
from chakra_et.cli.targets import ForceOption, Target, TargetOption
from chakra_et.cli.terminal import console_for, print_json, say
from chakra_et.errors import ChakraError
from chakra_et.loading import load
from chakra_et.shown import number_of

if TYPE_CHECKING:
    from chakra_et.synth import Sampler

synth_command: Final = typer.Typer(no_args_is_help=True)


@synth_command.callback()
def synth_verbs() -> None:
    """Learn workloads from traces, draw new sets of them, and compare sets."""


EXAMPLES: Final = {
    "synth": (
        ("chakra synth fit DIR -o model.json.gz", "learn a run"),
        ("chakra synth fit before after -o model.json.gz", "two runs"),
        ("chakra synth fit DIR --learner neural -o net.json.gz", "needs the extra torch"),
        ("chakra synth sample model.json.gz --ranks 8 --steps 4 -o OUT", "any number of ranks"),
        ("chakra synth sample model.json.gz --ranks 8 --condition comm-share=0.4 -o OUT", "more"),
        ("chakra synth sample model.json.gz --ranks 8 --for astra-sim -o OUT", "to simulate"),
        ("chakra synth compare DIR OUT", "how alike, beside the spread between steps or ranks"),
        ("chakra synth compare DIR OUT --log-a out.txt --log-b out.txt", "ASTRA-sim's cycles, too"),
    ),
}


class Learner(str, Enum):
    """What learns sequences."""

    MARKOV = "markov"
    NEURAL = "neural"


SeedOption = Annotated[int, typer.Option(metavar="N", min=0, help="Equal seeds, equal output.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")]


@synth_command.command("fit")
def fit_command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRACES", help="Runs: a directory or archive each; files are one run together."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="MODEL", help="A file: .json, .json.gz, …zst.")
    ],
    learner: Annotated[
        Learner, typer.Option(help="Chains of the best order, or a small recurrent network.")
    ] = Learner.MARKOV,
    batch: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            min=1e-6,
            help="The batch of these runs, for --condition batch=N; generated sets tell theirs.",
            show_default=False,
        ),
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Learn sequences of operations, sizes, durations and dependencies from traces.

    The model holds no names but families of operators, and sizes that repeat.
    docs/synth.md says what else it holds, and what that tells of the traces.
    """
    from chakra_et.synth import fit, save_model

    with working("reading"):
        sets = [load(run) for run in _runs(runs)]
    with working("fitting"):
        done = fit(sets, learner=learner.value, batch=batch, seed=seed)
    save_model(done.model, output)
    told = done.as_dict()
    if as_json:
        print_json(told)
        return
    console = console_for()
    say(console, output, "bold")
    for part in told["parts"]:
        _show_part(console, part)
    for reason, count in told["left_out"].items():
        say(console, f"  left out: {count:,} {reason}")


def _runs(given: list[Path]) -> list[list[Path]]:
    """Directories and archives one by one, single files together."""
    files = [
        path for path in given if path.is_file() and path.suffix not in (".zip", ".tar", ".tgz")
    ]
    return [[path] for path in given if path not in files] + ([files] if files else [])


def _show_part(console: Console, part: dict[str, Any]) -> None:
    grid = " x ".join(f"{axis} {size}" for axis, size in part["grid"].items())
    bits = part["bits_per_node"]
    say(
        console,
        f"  {grid}: {number_of(part['steps'], 'step')} of {number_of(part['ranks'], 'rank')}, "
        f"{part['nodes_of_a_step']:,} nodes each, {part['tokens']:,} kinds of nodes",
    )
    say(
        console,
        f"    held-out nodes cost {bits['chosen']:.3f} bits each, "
        f"by their frequencies alone {bits['frequencies']:.3f}"
        + (f", the network {bits['neural']:.3f}" if bits["neural"] is not None else ""),
    )
    orders = ", ".join(
        f"{name} {tokens}{' counted' * counts}" for name, (tokens, counts) in part["orders"].items()
    )
    say(console, f"    orders: {orders}")


@synth_command.command("sample")
def sample_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `chakra synth fit` wrote.")],
    ranks: Annotated[int, typer.Option(metavar="N", min=1, help="How many ranks.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="A directory.")],
    steps: Annotated[int, typer.Option(metavar="K", min=1, help="How many steps.")] = 1,
    scales: Annotated[
        list[str] | None,
        typer.Option(
            "--scale-sizes",
            metavar="[KIND=]FACTOR",
            help="Factor of sizes, and of durations with them; KIND is communication, compute or "
            "memory. May be repeated.",
            show_default=False,
        ),
    ] = None,
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            "--condition",
            metavar="NAME=VALUE",
            help="What the set should be like: world, batch, comm-share. May be repeated.",
            show_default=False,
        ),
    ] = None,
    seed: SeedOption = 0,
    target: TargetOption = None,
    compress: Annotated[bool, typer.Option("--compress", help="Write .et.zst files.")] = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Draw a set of any number of ranks and steps from a model.

    All ranks of a group run the same collectives in one order. docs/synth.md explains what
    conditions and factors change.
    """
    from chakra_et.synth import Sampler, load_model, parse_conditions, parse_scales

    expect_directory(output)
    if target is not None and compress:
        raise ChakraError("--for and --compress", remedy="The simulator reads plain files.")
    sampler = Sampler(
        load_model(model),
        ranks,
        steps,
        seed=seed,
        conditions=parse_conditions(conditions or ()),
        scale_sizes=parse_scales(scales or ()),
    )
    told = _sample(sampler, output, target, compress, force)
    if as_json:
        print_json(told)
    else:
        console = console_for()
        say(console, output, "bold")
        say(
            console,
            f"  {number_of(told['ranks'], 'rank')} on {told['grid']}: "
            f"{told['nodes']:,} nodes, {told['edges']:,} edges",
        )


def _sample(
    sampler: Sampler, output: Path, target: Target | None, compress: bool, force: bool
) -> dict[str, Any]:
    """Write the set; what it has."""
    told: dict[str, Any] = {
        "ranks": sampler.workload.grid.world_size,
        "grid": str(sampler.workload.grid),
    }
    if target is None:
        with working("sampling"):
            written = sampler.write(output, compressed=compress, force=force)
        return {**told, "nodes": written.nodes, "edges": written.edges}
    from chakra_et.passes import cure, write_for_astra_sim
    from chakra_et.replay import replay

    with working("sampling"):
        # Host time can be folded only by starts, which a replay gives.
        cured = cure(replay(sampler.traces()).traces, target.value).traces
        write_for_astra_sim(cured, output, "trace", force)
    nodes, edges = (
        sum(map(len, (getattr(t, n) for t in cured.values()))) for n in ("nodes", "edges")
    )
    return {**told, "nodes": nodes, "edges": edges}


@synth_command.command("compare")
def compare_command(
    left: Annotated[Path, typer.Argument(metavar="A", help="ETs or recordings of a run.")],
    right: Annotated[Path, typer.Argument(metavar="B", help="Those to compare with it.")],
    log_a: Annotated[
        Path | None,
        typer.Option(
            "--log-a", metavar="LOG", help="What ASTRA-sim printed of A.", show_default=False
        ),
    ] = None,
    log_b: Annotated[
        Path | None,
        typer.Option("--log-b", metavar="LOG", help="What it printed of B.", show_default=False),
    ] = None,
    form: FormOption = Form.TABLE,
    output: OutOption = None,
    fail: Annotated[
        bool, typer.Option("--fail", help="Exit with 1 if a measure lies outside twice the spread.")
    ] = False,
) -> None:
    """Say how alike two sets are, each measure beside its spread between steps or ranks of A.

    Types, sizes, durations, sequences, the graph, and what a replay makes of it. Alike is what lies
    within twice the spread. docs/synth.md explains the measures.
    """
    from chakra_et.simulation import read_astra_log
    from chakra_et.synth import compare_sets

    if (log_a is None) != (log_b is None):
        raise ChakraError("one log of two", remedy="Give both --log-a and --log-b, or none.")
    with working("reading"):
        sides = load(left), load(right)
        logs = None if log_a is None or log_b is None else (
            read_astra_log(log_a), read_astra_log(log_b)
        )  # fmt: skip
    with working("comparing"):
        found = compare_sets(*sides, logs)
    put_table(found.table(), form, output, 0)
    if fail and found.unlike:
        raise typer.Exit(1)
