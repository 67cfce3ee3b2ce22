"""`chakra query`: SQL over the columns of traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from chakra_et.cli.progress import working
from chakra_et.cli.tables import Form, FormOption, OutOption, TopOption, put_table
from chakra_et.loading import load

EXAMPLES: Final = {
    "query": (
        (
            'chakra query DIR "SELECT name, sum(self_ns) FROM nodes GROUP BY ALL ORDER BY 2 DESC"',
            "own time by name",
        ),
        ("chakra query DIR 'DESCRIBE nodes'", "the columns of a table"),
        (
            'chakra query t.et "SELECT kind, count(*) FROM edges GROUP BY kind" --format csv',
            "for other programs",
        ),
    ),
}


def query_command(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="ETs or recordings: a file, a directory, an archive."),
    ],
    sql: Annotated[
        str,
        typer.Argument(
            metavar="SQL", help="A query of the tables nodes, edges, attributes, groups, ranks."
        ),
    ],
    form: FormOption = Form.TABLE,
    output: OutOption = None,
    top: TopOption = None,
) -> None:
    """Ask traces in SQL.

    Every attribute of a node is a column of nodes; times are in nanoseconds. The SQL is DuckDB's
    (pip install 'chakra-et[query]'), which cannot reach files from here.
    """
    from chakra_et.tables.query import query

    with working("reading"):
        traces = load(source)
    with working("asking"):
        answer = query(traces, sql)
    put_table(answer, form, output, top)
