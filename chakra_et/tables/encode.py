"""Tables as files: CSV, JSON, Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any, Final

import msgspec

from chakra_et.extras import library
from chakra_et.io.json_text import to_json
from chakra_et.shown import encodable
from chakra_et.tables.arrow import to_arrow
from chakra_et.tables.table import Table


def to_csv(table: Table) -> bytes:
    """The columns with their names, values exact; nothing where a value is not known."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_plain(value) for value in row] for row in table.rows())
    return out.getvalue().encode()


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return msgspec.json.encode(encodable(value)).decode()
    return encodable(value)


def to_json_text(table: Table) -> bytes:
    """A list of objects, one for each row; null where a value is not known."""
    return to_json(table.as_dicts())


def to_parquet(table: Table) -> bytes:
    """Parquet, by pyarrow."""
    parquet = library("pyarrow.parquet", "tables", "Parquet")
    out = io.BytesIO()
    parquet.write_table(to_arrow(table), out)
    return out.getvalue()


ENCODERS: Final[dict[str, Callable[[Table], bytes]]] = {
    "csv": to_csv,
    "json": to_json_text,
    "parquet": to_parquet,
}
