"""Tables and traces as notebooks show them."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Final

from chakra_et.shown import shown
from chakra_et.tables.table import Table
from chakra_et.tables.text import cell, heading, is_number

if TYPE_CHECKING:
    from chakra_et.model import Trace

MOST_ROWS: Final = 20
_LONGEST: Final = 60


def table_html(table: Table, most: int = MOST_ROWS) -> str:
    """A table in HTML: the first rows, in units for people."""
    names = list(table.columns)
    head = "".join(f"<th>{escape(heading(name))}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(_cell(n, v) for n, v in zip(names, row, strict=True)) + "</tr>"
        for row in table.take(slice(most)).rows()
    )
    more = f"<p>{len(table) - most} more rows</p>" if len(table) > most else ""
    caption = f"<caption>{escape(table.name)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _cell(name: str, value: Any) -> str:
    side = ' style="text-align: right"' if is_number(value) else ""
    text = shown(cell(name, value))
    if len(text) <= _LONGEST:
        return f"<td{side}>{escape(text)}</td>"
    return f'<td title="{escape(text)}">{escape(text[:_LONGEST])}…</td>'


def traces_html(title: str, traces: Mapping[int, Trace]) -> str:
    """What is in some traces: a table of their ranks, and their first operators."""
    from chakra_et.tables.operators import operator_table
    from chakra_et.tables.ranks import rank_table

    tables = (rank_table(traces), operator_table(traces))
    return f"<p>{escape(title)}</p>" + "".join(table_html(table, 10) for table in tables)
