"""Small exports of Nsight Systems, made by hand in its schema: what a test needs, nothing else."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EPOCH_NS = 1_700_000_000_000_000_000
PID, TID = 4711, 4712

COLUMNS = {
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid correlationId nameId",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start end deviceId contextId streamId correlationId globalPid "
    "demangledName shortName gridX graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMCPY": "start end deviceId contextId streamId correlationId globalPid "
    "bytes copyKind srcKind dstKind graphNodeId",
    "CUPTI_ACTIVITY_KIND_MEMSET": "start end deviceId contextId streamId correlationId globalPid "
    "value bytes memKind",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "start end deviceId contextId streamId correlationId "
    "globalPid graphId graphExecId",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "start end deviceId contextId streamId correlationId "
    "globalPid syncType eventId",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "deviceId contextId streamId correlationId globalPid eventId",
    "NVTX_EVENTS": "start end eventType rangeId text globalTid endGlobalTid textId domainId "
    "jsonTextId jsonText",
    "CUBLAS_EVENTS": "start end eventClass globalTid nameId",
    "OSRT_API": "start end globalTid nameId",
    "SCHED_EVENTS": "start cpu isSchedIn globalTid",
    "MPI_RANKS": "globalTid rank",
    "PROCESSES": "globalPid pid name",
    "ENUM_CUDA_MEMCPY_OPER": "id name label",
    "ENUM_CUDA_MEM_KIND": "id name label",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs utcTime localTime",
}
"""Tables, and of their columns those that tests use."""


def global_id(pid: int, tid: int = 0) -> int:
    """A serialised id: a machine in the highest bits, the process, the thread."""
    return 1 << 56 | pid << 24 | tid


@dataclass
class Export:
    """Tables that appear with their first row, as the exporter makes them."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    strings: dict[str, int] = field(default_factory=dict)
    more: dict[str, str] = field(default_factory=dict)
    """Columns of newer releases, by table."""

    def __post_init__(self) -> None:
        self.row("TARGET_INFO_SESSION_START_TIME", utcEpochNs=EPOCH_NS)

    def text(self, value: str) -> int:
        """The number of a text."""
        return self.strings.setdefault(value, len(self.strings) + 100)

    def row(self, table: str, **columns: Any) -> Export:
        """Any row of any table."""
        self.rows.setdefault(table, []).append(columns)
        return self

    def call(
        self, name: str, start: int, end: int, id_: int, *, pid: int = PID, tid: int = TID
    ) -> Export:
        """A call of the runtime or the driver."""
        return self.row(
            "CUPTI_ACTIVITY_KIND_RUNTIME", start=start, end=end, eventClass=0,
            globalTid=global_id(pid, tid), correlationId=id_, nameId=self.text(name),
        )  # fmt: skip

    def work(self, table: str, start: int, end: int, id_: int, **columns: Any) -> Export:
        """Device work, on stream 7 of device 0 if not told otherwise."""
        place = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": global_id(PID)}
        own = {"start": start, "end": end, "correlationId": id_, **place, **columns}
        return self.row(f"CUPTI_ACTIVITY_KIND_{table}", **own)

    def kernel(self, name: str, start: int, end: int, id_: int, **columns: Any) -> Export:
        """A kernel."""
        names = {"demangledName": self.text(name), "shortName": self.text(name.split("<")[0])}
        return self.work("KERNEL", start, end, id_, **{**names, **columns})

    def launched(self, name: str, at: int, start: int, end: int, id_: int, **where: Any) -> Export:
        """A kernel and the call that launched it, 10 ns long."""
        pid = where.pop("pid", PID)
        tid = where.pop("tid", TID)
        self.call("cudaLaunchKernel_v7000", at, at + 10, id_, pid=pid, tid=tid)
        return self.kernel(name, start, end, id_, globalPid=global_id(pid), **where)

    def nvtx(self, text: str | None, start: int, end: Any, **columns: Any) -> Export:
        """A range that is pushed and popped."""
        payload = columns.pop("payload", None)
        told = {} if payload is None else {"jsonText": json.dumps(payload)}
        thread = global_id(columns.pop("pid", PID), columns.pop("tid", TID))
        own = {"eventType": 59, "domainId": 0, "globalTid": thread, "text": text}
        return self.row("NVTX_EVENTS", start=start, end=end, **{**own, **told, **columns})

    def write(self, path: Path) -> Path:
        """The database as a file."""
        with sqlite3.connect(path) as database:
            self.fill(database)
        database.close()
        return path

    def fill(self, database: sqlite3.Connection) -> None:
        """Make all tables, with their rows."""
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
        pairs = [(number, text) for text, number in self.strings.items()]
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", pairs)
        for table, rows in self.rows.items():
            told = COLUMNS.get(table) or " ".join(rows[0])
            names = [*told.split(), *self.more.get(table, "").split()]
            columns = ", ".join(f'"{name}"' for name in names)
            database.execute(f"CREATE TABLE {table} ({columns})")
            values = [tuple(row.get(name) for name in names) for row in rows]
            marks = ", ".join("?" * len(names))
            database.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
