"""A database that is read and never trusted: whole columns of integers and texts of its tables."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.converters.nsight.schema import STRINGS
from chakra_et.errors import ChakraError, FormatError
from chakra_et.io.memory import require
from chakra_et.io.protected import note_input
from chakra_et.io.source import blocks, first_bytes
from chakra_et.io.spool import is_opened

MISSING: Final = -(1 << 63)
"""What stands for a number that a row does not have."""
_MAGIC: Final = b"SQLite format 3\x00"
_FAR_NS: Final = 1 << 62
_TIMES: Final = ("start", "end")
_REMEDY: Final = (
    "Export the report again: nsys export --type sqlite --force-overwrite true REPORT.nsys-rep"
)
_STEP: Final = 1 << 20
_STEPS: Final = 1 << 26
_STEPS_PER_BYTE: Final = 200
"""A table cannot have more rows than its bytes hold; a damaged one may lead in circles."""


@dataclass
class Numbers:
    """Columns of the rows whose needed numbers are there, and how many rows lack them."""

    columns: dict[str, Rows]
    lost: int

    def __getitem__(self, name: str) -> Rows:
        return self.columns[name]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


class Database:
    """The tables of an open database. Names of tables and columns are as in NVIDIA's reference."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self.tables = {
            name: {row[1] for row in self._rows(f"PRAGMA table_info({_quoted(name)})")}
            for (name,) in self._rows(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND typeof(name) = 'text' "
                "AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
            )
        }

    def count(self, table: str) -> int:
        """How many rows a table has; 0 if it is not there."""
        if table not in self.tables:
            return 0
        # Not count(*), which nothing can interrupt.
        return next(self._rows(f"SELECT sum(1) FROM {_quoted(table)}"))[0] or 0

    def numbers(
        self, table: str, needed: Sequence[str], optional: Mapping[str, int] | None = None
    ) -> Numbers:
        """Columns of integers; `optional` says what stands where a row or the table has none.

        Rows without one of the needed integers are only counted. Raises FormatError if the table
        lacks a needed column.
        """
        optional = optional or {}
        if table not in self.tables:
            return Numbers({name: np.zeros(0, np.int64) for name in (*needed, *optional)}, 0)
        there = {name: d for name, d in optional.items() if name in self.tables[table]}
        read = [*map(_quoted, needed), *(_or(name, default) for name, default in there.items())]
        query = f"SELECT {', '.join(read)} FROM {_quoted(table)}{self._where(table, needed)}"
        flat = np.fromiter(chain.from_iterable(self._rows(query)), np.int64)
        found = dict(zip((*needed, *there), flat.reshape(-1, len(read)).T.copy(), strict=True))
        count = len(flat) // len(read)
        for name in optional.keys() - there.keys():
            found[name] = np.full(count, optional[name], np.int64)
        return Numbers(found, self.count(table) - count)

    def texts(self, table: str, needed: Sequence[str], column: str) -> list[str | None]:
        """A column of texts of the same rows; None where a row has none."""
        if column not in self.tables.get(table, ()):
            return [None] * len(self.numbers(table, needed))
        value = f"CASE WHEN typeof({_quoted(column)}) = 'text' THEN {_quoted(column)} END"
        query = f"SELECT {value} FROM {_quoted(table)}{self._where(table, needed)}"
        return [text for (text,) in self._rows(query)]

    @cached_property
    def strings(self) -> dict[int, str]:
        """The texts that other tables name by a number."""
        return self.named(STRINGS, "value")

    def named(self, table: str, column: str) -> dict[int, str]:
        """What a table calls its ids."""
        if not {"id", column} <= self.tables.get(table, set()):
            return {}
        ids = self.numbers(table, ("id",))["id"].tolist()
        texts = self.texts(table, ("id",), column)
        return {i: text for i, text in zip(ids, texts, strict=True) if text is not None}

    def _where(self, table: str, needed: Sequence[str]) -> str:
        lacking = [name for name in needed if name not in self.tables[table]]
        if lacking:
            raise FormatError(
                f"the table {table} has no column {lacking[0]}", path=self.path, remedy=_REMEDY
            )
        return " WHERE " + " AND ".join(map(_usable, needed))

    def _rows(self, query: str) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._connection.execute(query)
        except sqlite3.Error as error:
            raise FormatError(
                f"the database is damaged: {error}", path=self.path, remedy=_REMEDY
            ) from error


@contextmanager
def opened(path: Path) -> Iterator[Database]:
    """The database in a file, however that is packed. Raises FormatError if it is damaged."""
    if not is_opened(path) and path.is_file() and first_bytes(path, len(_MAGIC)) == _MAGIC:
        note_input(path)
        yield from _opened(path, path)
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.sqlite"
        with plain.open("wb") as file:
            file.writelines(blocks(path))
        yield from _opened(path, plain)


def _opened(path: Path, plain: Path) -> Iterator[Database]:
    size = plain.stat().st_size
    require(path, size)
    # Whoever reads a report changes nothing: no lock, no journal.
    place = f"{plain.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        connection = sqlite3.connect(place, uri=True)
    except sqlite3.Error as error:
        raise ChakraError(f"cannot be opened: {error}", path=path) from error
    try:
        connection.text_factory = lambda text: text.decode("utf-8", "replace")
        connection.set_progress_handler(_Limit(size), _STEP)
        connection.execute("PRAGMA trusted_schema = OFF")
        yield Database(path, connection)
    finally:
        connection.close()


class _Limit:
    """Ends a query that takes more steps than an intact file of its size can need."""

    def __init__(self, size: int) -> None:
        self._left = (_STEPS + _STEPS_PER_BYTE * size) // _STEP

    def __call__(self) -> bool:
        self._left -= 1
        return self._left < 0


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _or(name: str, default: int) -> str:
    quoted = _quoted(name)
    return f"CASE WHEN typeof({quoted}) = 'integer' THEN {quoted} ELSE {_literal(default)} END"


def _literal(number: int) -> str:
    return "(-9223372036854775807 - 1)" if number == MISSING else str(number)


def _usable(name: str) -> str:
    """The condition that a needed integer is there, and if it is a time, that sums of it fit."""
    integer = f"typeof({_quoted(name)}) = 'integer'"
    fits = f" AND {_quoted(name)} BETWEEN {-_FAR_NS} AND {_FAR_NS}"
    return integer + fits * (name in _TIMES)
