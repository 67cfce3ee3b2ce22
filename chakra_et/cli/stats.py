"""`chakra stats`: where the time of a run goes, in tables."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Final

import typer

from chakra_et.cli.progress import working
from chakra_et.cli.tables import (
    FilesArgument,
    Form,
    FormOption,
    OutOption,
    TopOption,
    form_of,
    put_table,
    show_or_write,
    write,
)
from chakra_et.io.json_text import to_json
from chakra_et.loading import load
from chakra_et.tables.names import BY

EXAMPLES: Final = {
    "stats": (
        ("chakra stats DIR", "what each rank's time went into, operators, kernels, collectives"),
        ("chakra stats trace.0.et --by name --top 0", "all operators by self time"),
        ("chakra stats DIR --by shape --format csv -o latencies.csv", "latencies by shape"),
        ("chakra stats host.json device.json --by stream", "of recordings, converted at once"),
    ),
}
By = Enum("By", {name.upper(): name for name in BY}, type=str)  # type: ignore[misc]


def stats_command(
    files: FilesArgument,
    by: Annotated[
        By | None,
        typer.Option(
            "--by",
            help="What rows stand for; without it the tables that say most.",
            show_default=False,
        ),
    ] = None,
    form: FormOption = Form.TABLE,
    output: OutOption = None,
    top: TopOption = None,
) -> None:
    """Tables of a run: operators, kernels, collectives, streams, steps, memory.

    Times by name are those of torch.profiler's key_averages(). Units stand in the names of
    columns; people see milliseconds, programs nanoseconds. docs/tables.md explains every column.
    """
    from chakra_et.tables import overview, table_by

    with working("reading"):
        traces = load(files)
    form = form_of(form, output)
    if by is not None or form in (Form.CSV, Form.PARQUET):
        with working("adding up"):
            table = table_by(traces, "name" if by is None else by.value)
        put_table(table, form, output, top)
        return
    with working("adding up"):
        tables = overview(traces)
    if form is Form.JSON:
        found = {name: table.take(slice(top or None)).as_dicts() for name, table in tables.items()}
        write(to_json(found), output)
    else:
        show_or_write(list(tables.values()), output, top)
