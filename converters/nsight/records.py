"""Records of all tables as they are collected, until they are one trace."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from chakra_et.columns import NO_ROW, Rows, no_rows
from chakra_et.converters.kineto.account import totals_of
from chakra_et.converters.kineto.categories import DEVICE_CATEGORIES
from chakra_et.converters.nsight.database import MISSING, Database
from chakra_et.converters.nsight.schema import NO_NUMBER
from chakra_et.io.repairs import Repairs
from chakra_et.pool import Pool
from chakra_et.recording import DeviceTrace, Facts, Role, Sparse, Waits
from chakra_et.recording.device_trace import COLUMNS
from chakra_et.recording.same import lookup

_FORM: Final = "X"
"""The form of all records: they last."""
_BITS: Final = 24
_MASK: Final = (1 << _BITS) - 1
_NAMELESS: Final = "unknown"


def pid_of(number: Rows) -> Rows:
    """The process in serialised ids of threads or processes; `NO_ROW` where there is none."""
    return np.where(number == MISSING, NO_ROW, number >> _BITS & _MASK)


def tid_of(number: Rows) -> Rows:
    """The thread in serialised ids of threads."""
    return number & _MASK


class Records:
    """One entry for each record that is kept, and the account of all that were read.

    `process` is `NO_ROW` for device work whose process its table does not tell.
    """

    def __init__(self, path: Path, base_time_ns: int, repairs: Repairs) -> None:
        self.path, self.base_time_ns, self.repairs = path, base_time_ns, repairs
        self.names: Pool[str] = Pool()
        self.categories: Pool[str] = Pool()
        self.shape_texts: Pool[bytes] = Pool({b"": 0})
        self.counts: Counter[tuple[str, str]] = Counter()
        self.left_out: Counter[tuple[str, str]] = Counter()
        self.collectives: list[tuple[int, Facts]] = []
        self.waits = Waits()
        self.args: dict[int, str] = {}
        """What else is told of device work, by row."""
        self.waited_for: list[int] = []
        """Rows of copies that their call waits for."""
        self._parts: dict[str, list[npt.NDArray[Any]]] = {}
        self._count = 0

    def add(
        self,
        role: Role,
        category: str,
        name: Rows,
        *,
        start: Rows,
        end: Rows,
        process: Rows,
        pid: Rows,
        tid: Rows,
        **columns: Rows,
    ) -> Rows:
        """Take in records of one category; returns the rows that they will be."""
        count = len(name)
        told = {
            "role": np.full(count, int(role)),
            "category": np.full(count, self.categories[category] if count else 0),
            "name": name, "pid": pid, "tid": tid, "start_ns": start + self.base_time_ns,
            "duration_ns": end - start, "process": process, **columns,
        }  # fmt: skip
        absent = DeviceTrace.of(self.path, count, self.repairs)
        for column in ("process", *COLUMNS):
            values = told[column] if column in told else getattr(absent, column)
            self._parts.setdefault(column, []).append(values)
        self.counts[category, _FORM] += count
        self._count += count
        return np.arange(self._count - count, self._count)

    def leave_out(self, name: str, reason: str, count: int = 1) -> None:
        """Count records that are not kept."""
        if count:
            self.counts[name, _FORM] += count
            self.left_out[name, reason] += count

    def lose(self, category: str, count: int, reason: str = NO_NUMBER) -> None:
        """Count records that are damaged. Raises FormatError if the reading is strict."""
        self.leave_out(category, reason, count)
        if count and self.repairs.strict:
            self.repairs.leave_out(f"{count} records of {category}: {reason}", None)

    def named(self, ids: Rows, database: Database) -> Rows:
        """Names by their number in the table of strings."""
        return self.coded(ids, {i: database.strings.get(i, _NAMELESS) for i in distinct(ids)})

    def coded(self, keys: Rows, texts: dict[int, str]) -> Rows:
        """Names by any key."""
        unique, place = np.unique(keys, return_inverse=True)
        code = np.array([self.names[texts[key]] for key in unique.tolist()], np.int64)
        return code[place] if len(keys) else no_rows()

    def finish(self, **told: Any) -> DeviceTrace:
        """The trace of all records."""
        columns: dict[str, npt.NDArray[Any]] = {
            name: np.concatenate(self._parts[name]).astype(dtype)
            for name, dtype in {"process": np.int64, **COLUMNS}.items()
        }
        columns["process"] = _owners(columns)
        return DeviceTrace.of(
            self.path,
            self._count,
            self.repairs,
            base_time_ns=self.base_time_ns,
            names=self.names,
            categories=self.categories,
            shape_texts=self.shape_texts,
            args=[self.args.get(row, "") for row in range(self._count)],
            counts=dict(+self.counts),
            totals=totals_of(+self.counts),
            left_out=self.left_out,
            work_categories=DEVICE_CATEGORIES,
            waits=self.waits,
            collectives=Sparse(sorted(self.collectives)),
            **columns,
            **told,
        )


def _owners(columns: dict[str, npt.NDArray[Any]]) -> Rows:
    """The process of each record: its own, else that of the call with its id, else the first."""
    process: Rows = columns["process"]
    ids = columns["correlation"]
    calls = np.flatnonzero((columns["role"] == Role.CALL) & (ids > 0))
    open_ones = np.flatnonzero(process == NO_ROW)
    known = process[process != NO_ROW]
    found = lookup(ids[calls], process[calls], ids[open_ones])
    process[open_ones] = np.where(found == NO_ROW, known.min() if len(known) else 0, found)
    return process


def distinct(values: Rows) -> list[int]:
    """Each value once."""
    found: list[int] = np.unique(values).tolist()
    return found
