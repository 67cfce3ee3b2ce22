"""`chakra info`: what a file is and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from chakra_et.cli.show import show_node, show_trace
from chakra_et.converters.kineto import Role, read_device
from chakra_et.converters.linked import read_linked
from chakra_et.converters.pytorch import read_host
from chakra_et.errors import ChakraError
from chakra_et.files import read
from chakra_et.io.sniff import FileKind, sniff
from chakra_et.model import Node, Trace


def info_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace of any kind.")],
    node: Annotated[
        int | None,
        typer.Option("--node", metavar="ID", min=0, help="Explain one node of an ET."),
    ] = None,
) -> None:
    """Say what kind of file this is, by its content, and what is in it."""
    console = Console(highlight=False)
    kind = sniff(file)
    if node is not None:
        if kind not in (FileKind.ET, FileKind.ET_JSON):
            raise ChakraError(
                f"{file}: {kind.value}, which has no nodes to show",
                remedy="--node is for ETs. Make one with: chakra convert",
            )
        trace = read(file)
        show_node(console, trace, _node(trace, node, file))
        return
    console.print(f"{file}: {kind.value}", style="bold", markup=False, soft_wrap=True)
    if kind is FileKind.HOST:
        host = read_host(file)
        console.print(f"  schema {host.schema}, process {host.pid}, {len(host)} nodes")
        console.print("  make an ET of it with: chakra convert --host FILE [--device FILE] -o OUT")
    elif kind is FileKind.DEVICE:
        device = read_device(file)
        console.print(f"  {sum(device.counts.values())} records")
        for (category, phase), count in sorted(device.counts.items()):
            console.print(f"    {count:>8} {category or '(no category)'}, phase {phase}")
        console.print("  make an ET of it with: chakra convert [--host FILE] --device FILE -o OUT")
    elif kind is FileKind.LINKED:
        linked = read_linked(file)
        host, work = linked.host, len(linked.device.rows(Role.WORK))
        console.print(
            f"  schema {host.schema}, process {host.pid}, {len(host)} host nodes, "
            f"{int((linked.record >= 0).sum())} of them with a time, {work} device nodes"
        )
        console.print("  make an ET of it with: chakra convert FILE -o OUT")
    else:
        show_trace(console, read(file))


def _node(trace: Trace, node_id: int, file: Path) -> Node:
    try:
        return trace.node(node_id)
    except (KeyError, OverflowError):
        ids = trace.nodes.id
        there = (
            f"Ids go from {ids.min()} to {ids.max()}." if len(ids) else "The trace has no nodes."
        )
        raise ChakraError(f"{file}: no node has the id {node_id}", remedy=there) from None
