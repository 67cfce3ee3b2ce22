"""`chakra info`: what a file is and what is in it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from chakra_et.cli.show import show_facts, show_node, show_trace
from chakra_et.converters.format import View
from chakra_et.errors import ChakraError
from chakra_et.files import read
from chakra_et.inputs import open_input
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
    given = open_input(file)
    if node is not None:
        if given.view is not View.TRACE:
            raise ChakraError(
                f"{file}: {given.format.name}, which has no nodes to show",
                remedy="--node is for ETs. Make one with: chakra convert",
            )
        trace = read(file)
        show_node(console, trace, _node(trace, node, file))
        return
    console.print(f"{file}: {given.format.name}", style="bold", markup=False, soft_wrap=True)
    content = given.read()
    if given.view is View.TRACE:
        show_trace(console, content)
    elif given.format.describe is not None:
        show_facts(console, given.format.describe(content))
        console.print("  make an ET of it with: chakra convert FILE -o OUT.et")


def _node(trace: Trace, node_id: int, file: Path) -> Node:
    try:
        return trace.node(node_id)
    except (KeyError, OverflowError):
        ids = trace.nodes.id
        there = (
            f"Ids go from {ids.min()} to {ids.max()}." if len(ids) else "The trace has no nodes."
        )
        raise ChakraError(f"{file}: no node has the id {node_id}", remedy=there) from None
