"""`chakra generate`: workloads that nobody recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from chakra_et.build import PackedSet, Program, Workload, Written, write_packed, write_workload
from chakra_et.build.workload import Watch
from chakra_et.cli.pack import ranks_in
from chakra_et.cli.plan_options import with_plan
from chakra_et.cli.progress import working
from chakra_et.cli.targets import ForceOption, TargetOption
from chakra_et.definitions import CollectiveType
from chakra_et.errors import ChakraError
from chakra_et.io.output import make_directory
from chakra_et.passes import cure, write_for_astra_sim
from chakra_et.shown import number_of
from chakra_et.workloads.algorithms import ALGORITHMS, algorithm
from chakra_et.workloads.durations import Durations, Roofline, Table, device, devices, unknown
from chakra_et.workloads.generate import program
from chakra_et.workloads.micro import CASES, case
from chakra_et.workloads.msccl import msccl_messages, read_msccl
from chakra_et.workloads.plan import Plan
from chakra_et.workloads.serving_program import (
    ServingSummary,
    lay_out_serving,
    serving_left_out,
    serving_program,
)
from chakra_et.workloads.serving_text import is_serving_text, read_serving_text
from chakra_et.workloads.summary import Summary
from chakra_et.workloads.text_layout import lay_out
from chakra_et.workloads.text_program import text_program
from chakra_et.workloads.text_summary import TextSummary, left_out
from chakra_et.workloads.texts import Dialect, read_text
from chakra_et.workloads.transfers import messages

generate_command: Final = typer.Typer(no_args_is_help=True)


@generate_command.callback()
def generate_verbs() -> None:
    """Write workloads that nobody recorded: models, patterns, collective algorithms."""


EXAMPLES: Final = {
    "generate": (
        ("chakra generate llm --model llama2-7b --tp 2 --dp 2 -o OUT", "a step of training"),
        ("chakra generate llm --model llama3-8b --phase serve -o OUT", "prefill and decode"),
        ("chakra generate llm --model gpt3-175b --tp 8 --pp 8 --pack -o set", "in one file"),
        ("chakra generate micro all --for astra-sim -o OUT", "small cases for simulators"),
        ("chakra generate collective ring --ranks 8 -o OUT", "an all-reduce as messages"),
        ("chakra generate text workload.txt --ranks 16 -o OUT", "a text of ASTRA-sim 1.0 or SimAI"),
        ("chakra generate text batch.txt --ranks 2 -o OUT", "a text of LLMServingSim"),
        ("chakra generate msccl allreduce.xml -o OUT", "an algorithm of MSCCL as messages"),
        ("chakra generate unpack set --ranks 0-7 -o OUT", "the files of some ranks"),
    ),
}

OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="OUT", help="A directory; with --pack, a file."),
]
PackOption = Annotated[bool, typer.Option("--pack", help="Write all ranks into one file.")]
CompressOption = Annotated[bool, typer.Option("--compress", help="Write .et.zst files.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print what the set holds as JSON.")]


@generate_command.command("llm")
@with_plan
def llm_command(
    plan: Plan,
    output: OutputOption = None,
    device_name: Annotated[
        str, typer.Option("--device", help=f"Durations by roofline: {', '.join(devices())}, none.")
    ] = "a100",
    durations: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Durations by operator, before those of the device."),
    ] = None,
    all_flops: Annotated[
        bool, typer.Option("--all-flops", help="Count element-wise work in num_ops as well.")
    ] = False,
    tensors: Annotated[
        bool, typer.Option("--tensors", help="Name the tensors that nodes read and write.")
    ] = False,
    pack: PackOption = False,
    compress: CompressOption = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write a step of a large language model: training, or inference."""
    workload = plan.workload(tensors=tensors)
    summary = Summary(plan, workload)
    make = program(plan, _durations(device_name, durations), count_pointwise=all_flops)
    written = _write(workload, make, output, pack, compress, force, summary.add)
    told = summary.as_dict()
    if as_json:
        _print_json(told)
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(
        f"{plan.model.name}: {told['parameters']:,} parameters, "
        f"{number_of(told['world_size'], 'rank')}, "
        f"{number_of(told['micro_batches'], 'micro-batch', 'es')}, "
        f"{told['flops']['total']:.4g} FLOP"
    )
    peak = told["peak_memory_bytes"]
    console.print(f"  memory of a rank: {peak / 1e9:.1f} GB at most, by closed form")
    _show_written(console, output, written)
    room = device(device_name).memory_bytes if device_name != "none" else peak
    if peak > room:
        warning = f"  warning: {device_name} has {room / 1e9:.0f} GB"
        console.print(Text(warning, style="yellow"))


def _durations(name: str, table: Path | None) -> Durations:
    """The provider: a table first, then a device's roofline."""
    behind: Durations = unknown if name == "none" else Roofline(device(name))
    if table is None:
        return behind
    known = Table.read(table)

    def either(operator: Any) -> int | None:
        found = known(operator)
        return behind(operator) if found is None else found

    return either


def _write(
    workload: Workload,
    make: Program,
    output: Path | None,
    pack: bool,
    compress: bool,
    force: bool,
    watch: Watch | None = None,
) -> Written | None:
    """Write the set as asked for; without an output, only go through the programs."""
    if pack and compress:
        raise ChakraError("--pack and --compress", remedy="A packed set is compressed already.")
    with working("generating"):
        if output is None:
            for _ in workload.programs(make, watch):
                pass
            return None
        if pack:
            return write_packed(workload, make, output, watch=watch)
        return write_workload(workload, make, output, compressed=compress, force=force, watch=watch)


def _show_written(console: Console, output: Path | None, written: Written | None) -> None:
    if written is None:
        console.print("  nothing is written without -o")
        return
    console.print(Text(str(output), style="bold"))
    console.print(
        f"  {written.nodes:,} nodes and {written.edges:,} edges in "
        f"{written.file_bytes:,} bytes; {number_of(written.programs, 'distinct program')}"
    )


def _print_json(told: dict[str, Any]) -> None:
    typer.echo(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())


RanksOption = Annotated[int, typer.Option(min=1, help="How many ranks.")]
SizeOption = Annotated[int, typer.Option(metavar="BYTES", help="Bytes to communicate.")]
DirectoryOption = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where to.")]
DeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        help=f"Device whose speed sets the time of additions: {', '.join(devices())}, none.",
    ),
]


@generate_command.command("micro")
def micro_command(
    name: Annotated[
        str, typer.Argument(metavar="CASE", help=f"{', '.join(CASES)}, or all of them.")
    ],
    output: DirectoryOption,
    ranks: RanksOption = 4,
    size: SizeOption = 1 << 20,
    duration_ns: Annotated[int, typer.Option(help="Duration of each computation.")] = 10_000,
    target: TargetOption = None,
    force: ForceOption = False,
) -> None:
    """Write small traces, each for one thing; all of them into directories of their own."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    if name == "all":
        make_directory(output)
    for one in CASES if name == "all" else [name]:
        found = case(one)
        place = output / one if name == "all" else output
        program = found.program(size, duration_ns)
        if target is None:
            write_workload(found.workload(ranks), program, place, force=force)
        else:
            cured = cure(found.workload(ranks).traces(program), target.value)
            write_for_astra_sim(cured.traces, place, "trace", force)
        mark = "" if found.native or target else " (not for ASTRA-sim as it is)"
        console.print(f"{place}: {found.about}{mark}")


@generate_command.command("collective")
def collective_command(
    name: Annotated[str, typer.Argument(metavar="ALGORITHM", help=", ".join(ALGORITHMS))],
    output: DirectoryOption,
    collective: Annotated[
        str, typer.Option(help="all-reduce, all-gather, reduce-scatter and others.")
    ] = "all-reduce",
    ranks: RanksOption = 8,
    size: SizeOption = 1 << 20,
    per_node: Annotated[int, typer.Option(help="Ranks of a node, if hierarchical.")] = 1,
    device_name: DeviceOption = "a100",
    force: ForceOption = False,
) -> None:
    """Write a collective algorithm as the sends, receives and additions that it consists of.

    BYTES are those of the whole buffer: an all-reduce's input, what an all-gather leaves, a
    reduce-scatter's input. An all-to-all's buffer holds what every rank sends to every rank.
    """
    types = {type.name.lower().replace("_", "-"): type for type in CollectiveType}
    if collective not in types:
        raise ChakraError(
            f"no collective {collective!r}", remedy=f"It is one of {', '.join(types)}."
        )
    chosen = algorithm(name, types[collective], ranks, per_node)
    facts = _json({"kind": "collective", "algorithm": name, "collective": collective, "size": size})
    workload = Workload(rank=ranks, facts={"workload": facts})
    make = messages(chosen, size, _durations(device_name, None))
    written = _write(workload, make, output, pack=False, compress=False, force=force)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"{name} {collective} of {ranks} ranks, {len(chosen.steps)} steps")
    _show_written(console, output, written)


@generate_command.command("msccl")
def msccl_command(
    file: Annotated[Path, typer.Argument(metavar="XML", help="An algorithm of MSCCL.")],
    output: DirectoryOption,
    size: SizeOption = 1 << 20,
    device_name: DeviceOption = "a100",
    force: ForceOption = False,
) -> None:
    """Write an algorithm of MSCCL as sends, receives and additions.

    BYTES are those of the buffer that the file's nchunksperloop chunks make up.
    """
    found = read_msccl(file)
    facts = _json({"kind": "msccl", "algorithm": found.name, "size": size})
    workload = Workload(rank=len(found.blocks), facts={"workload": facts})
    make = msccl_messages(found, size, _durations(device_name, None))
    written = _write(workload, make, output, pack=False, compress=False, force=force)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(Text(f"{found.name}: {found.collective} of {len(found.blocks)} ranks"))
    _show_written(console, output, written)


@generate_command.command("text")
def text_command(
    file: Annotated[
        Path,
        typer.Argument(metavar="TEXT", help="A text of ASTRA-sim 1.0, SimAI or LLMServingSim."),
    ],
    output: OutputOption = None,
    ranks: Annotated[
        int | None, typer.Option(help="How many ranks. Default: the text's all_gpus, or stages.")
    ] = None,
    dims: Annotated[
        str | None,
        typer.Option(metavar="AxB", help="Ranks in each dimension of the network, as in 4x2."),
    ] = None,
    clock: Annotated[float, typer.Option(metavar="GHZ", help="Cycles in a nanosecond.")] = 1.0,
    steps: Annotated[int, typer.Option(min=1, help="Steps of training.")] = 1,
    dialect: Annotated[
        Dialect | None,
        typer.Option(help="Dialect of the text; by default recognised by its content."),
    ] = None,
    pack: PackOption = False,
    compress: CompressOption = False,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Write what a workload text describes: its layers' passes and collectives, for every rank."""
    if not 0.001 <= clock <= 1000:
        raise ChakraError(f"a clock of {clock} GHz", remedy="Give 0.001 to 1000.")
    if dialect is None and is_serving_text(file):
        _serving(file, ranks, _dims(dims), steps, (output, pack, compress, force), as_json)
        return
    text = read_text(file, dialect)
    told = {
        "kind": "text", "file": file.name, "policy": text.policy.value, **text.numbers,
        "dialect": text.dialect.value, "clock_ghz": clock, "steps": steps,
    }  # fmt: skip
    layout = lay_out(text, ranks, _dims(dims), {"workload": _json(told)})
    summary = TextSummary(layout)
    make = text_program(layout, clock, steps)
    written = _write(layout.workload, make, output, pack, compress, force, summary.add)
    if as_json:
        _print_json(summary.as_dict())
        return
    holds = f"{text.policy.value}, {len(text.layers)} layers"
    _show_text(holds, layout.workload, text.dialect.value, left_out(layout), output, written)


def _serving(
    file: Path,
    ranks: int | None,
    dims: list[int],
    steps: int,
    where: tuple[Path | None, bool, bool, bool],
    as_json: bool,
) -> None:
    """Write the set of a text of LLMServingSim; `where` are the options of `_write`."""
    text = read_serving_text(file)
    told = {"kind": "text", "file": file.name, "mode": text.mode.value, "stages": text.stages,
            "dialect": "llmservingsim", "steps": steps}  # fmt: skip
    layout = lay_out_serving(text, ranks, dims, {"workload": _json(told)})
    summary = ServingSummary(layout)
    written = _write(layout.workload, serving_program(layout, steps), *where, summary.add)
    if as_json:
        _print_json(summary.as_dict())
        return
    holds = f"{text.mode.value}, {len(text.rows)} rows"
    left = serving_left_out(layout)
    _show_text(holds, layout.workload, "LLMServingSim", left, where[0], written)


def _show_text(
    holds: str,
    workload: Workload,
    reader: str,
    left: dict[str, int],
    output: Path | None,
    written: Written | None,
) -> None:
    """What a text holds, as whose reader takes it, what of it is left out, and what was written."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    grid = workload.grid
    console.print(f"{holds}, {grid.world_size} ranks ({grid}), as {reader} reads it")
    for reason, count in left.items():
        console.print(Text(f"  left out: {count} x {reason}", style="yellow"))
    _show_written(console, output, written)


def _dims(text: str | None) -> list[int]:
    """The numbers of a network like 4x2."""
    parts = text.split("x") if text else []
    if not all(part.isdecimal() for part in parts):
        raise ChakraError(f"invalid network {text!r}", remedy="Write it like 4x2.")
    return [int(part) for part in parts]


def _json(told: dict[str, Any]) -> str:
    return msgspec.json.encode(told).decode()


@generate_command.command("unpack")
def unpack_command(
    packed: Annotated[Path, typer.Argument(metavar="SET", help="A packed set.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="A directory.")],
    ranks: Annotated[
        str | None, typer.Option(help="Which ranks, as in 0-7,64. Default: all.")
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write the files of a packed set's ranks."""
    made = PackedSet(packed).unpack(output, None if ranks is None else ranks_in(ranks), force=force)
    Console(highlight=False, markup=False, soft_wrap=True).print(
        f"{output}: {sum(file.suffix == '.et' for file in made)} ranks"
    )
