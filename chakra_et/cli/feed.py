"""`chakra feed`: hand out the nodes of a trace to a simulator in another process."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.cli.progress import working
from chakra_et.errors import ChakraError
from chakra_et.extras import needing
from chakra_et.feeder.feeder import Source
from chakra_et.feeder.feeder_set import find_ranks, rank_in_name
from chakra_et.feeder.options import Options, edge_kinds
from chakra_et.feeder.session import Limits, Session
from chakra_et.io.archive import members
from chakra_et.model.nodes import type_label
from chakra_et.shown import number_of, shown

EXAMPLES: Final = {
    "feed": (
        ("chakra feed trace.0.et", "the order in which nodes become ready"),
        ("chakra feed DIR --stdio", "serve a simulator over pipes"),
        ("chakra feed DIR --grpc 127.0.0.1:5151", "serve simulators over gRPC"),
    ),
}


class OrderChoice(str, Enum):
    """In which order ready nodes are handed out."""

    ID = "id"
    START = "start"


class FaultChoice(str, Enum):
    """What to do about an edge that cannot be kept."""

    FAIL = "fail"
    DROP = "drop"
    WAIT = "wait"


def feed_command(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH", help="A trace, a directory or an archive of ranks, or a prefix."
        ),
    ],
    stdio: Annotated[
        bool, typer.Option("--stdio", help="Serve over standard input and output.")
    ] = False,
    grpc: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Serve over gRPC, at HOST:PORT or unix:PATH."),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Allow an address that other machines can reach.")
    ] = False,
    rank: Annotated[int | None, typer.Option(help="Only this rank.")] = None,
    order: Annotated[OrderChoice, typer.Option(help="Order of ready nodes.")] = OrderChoice.ID,
    missing_parent: Annotated[
        FaultChoice, typer.Option(help="What to do about parents that are not in the trace.")
    ] = FaultChoice.FAIL,
    self_edge: Annotated[
        FaultChoice, typer.Option(help="What to do about nodes that wait for themselves.")
    ] = FaultChoice.FAIL,
    gate: Annotated[
        list[str] | None, typer.Option(help="An edge kind that gates nodes; by default all do.")
    ] = None,
    ignore_inferred: Annotated[
        bool, typer.Option("--ignore-inferred", help="Do not gate nodes by inferred edges.")
    ] = False,
    skip_metadata: Annotated[
        bool, typer.Option("--skip-metadata", help="Finish metadata nodes automatically.")
    ] = False,
    window: Annotated[int, typer.Option(help="Nodes held in memory at once; 0 for all.")] = 0,
    strict_window: Annotated[
        bool, typer.Option("--strict-window", help="Fail rather than hold more than the window.")
    ] = False,
    sessions: Annotated[int, typer.Option(help="gRPC: concurrent sessions.")] = 64,
    idle: Annotated[
        float, typer.Option(help="gRPC: seconds that a client may stay silent.")
    ] = 300.0,
    lifetime: Annotated[float, typer.Option(help="gRPC: seconds a session may last.")] = 86400.0,
) -> None:
    """Hand out nodes whose dependencies are done. Without a server: print the order of a run."""
    if stdio and grpc is not None:
        raise typer.BadParameter("choose one of --stdio and --grpc")
    options = Options(
        order=order.value,
        missing_parent=missing_parent.value,
        self_edge=self_edge.value,
        inferred=not ignore_inferred,
        skip_metadata=skip_metadata,
        window=window,
        strict_window=strict_window,
    )
    if gate:
        options = replace(options, gate=edge_kinds(gate))
    sources = _sources(path, rank)
    limits = Limits(sessions=sessions, idle_s=idle, session_s=lifetime)
    if stdio:
        _serve_stdio(sources, options, limits)
    elif grpc is not None:
        _serve_grpc(sources, options, limits, grpc, public)
    else:
        _print_order(sources, options)


def _sources(path: Path, rank: int | None) -> dict[int, Source]:
    if path.is_file() and not members(path):
        named = rank_in_name(path)
        return {(named or 0) if rank is None else rank: path}
    found: dict[int, Source] = dict(find_ranks(path))
    if rank is None:
        return found
    if rank not in found:
        raise ChakraError(f"there is no rank {rank} here", path=path)
    return {rank: found[rank]}


def _serve_stdio(sources: Mapping[int, Source], options: Options, limits: Limits) -> None:
    from chakra_et.feeder.stdio import serve

    session = Session(sources, options, limits)
    serve(session, sys.stdin.buffer, sys.stdout.buffer, limits.request_bytes)


def _serve_grpc(
    sources: Mapping[int, Source], options: Options, limits: Limits, address: str, public: bool
) -> None:
    with needing("--grpc", "grpc", "grpc", ", or use --stdio"):
        from chakra_et.feeder.remote import Server
    server = Server(sources, address, options=options, limits=limits, public=public)
    server.start()
    typer.echo(f"serving {number_of(len(sources), 'rank')} at {server.address}", err=True)
    try:
        server.wait()
    except KeyboardInterrupt:
        pass
    finally:  # SIGTERM ends the program by an exception, too
        server.stop()


def _print_order(sources: Mapping[int, Source], options: Options) -> None:
    from chakra_et.feeder.feeder import Feeder

    for rank in sorted(sources):
        with working("reading"):
            feeder = Feeder(sources[rank], options=options)
        for node in feeder:
            kind = type_label(int(node.type))
            typer.echo(f"{rank}\t{node.id}\t{kind}\t{node.duration_ns}\t{shown(node.name)}")
