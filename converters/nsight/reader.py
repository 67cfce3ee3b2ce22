"""Reading an export into columns."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from chakra_et.converters.kineto.kinds import set_kinds
from chakra_et.converters.kineto.sanity import quarantine
from chakra_et.converters.nsight.calls import add_calls, add_libraries
from chakra_et.converters.nsight.communicators import Communicators
from chakra_et.converters.nsight.database import Database, opened
from chakra_et.converters.nsight.ranges import add_ranges
from chakra_et.converters.nsight.records import Records, distinct, pid_of
from chakra_et.converters.nsight.schema import (
    IDLE_PROCESS,
    LEFT_OUT,
    MPI_RANKS,
    PROCESSES,
    READ,
    SESSION,
    TIMES,
    UNKNOWN_TABLE,
)
from chakra_et.converters.nsight.waits import add_waits
from chakra_et.converters.nsight.work import add_copies, add_fills, add_graphs, add_kernels
from chakra_et.errors import FormatError
from chakra_et.io.memory import collection_paused
from chakra_et.io.repairs import Repairs
from chakra_et.recording import DeviceTrace, Facts, Kind, Role
from chakra_et.recording.numbers import rank_number

_PROFILE: Final = (
    "Profile the run with `nsys profile --trace cuda,nvtx`, then `nsys export --type sqlite`."
)
_EPOCH: Final = "utcEpochNs"
_FAR_NS: Final = 1 << 62


@collection_paused()
def read_device(path: str | Path, *, strict: bool = False) -> DeviceTrace:
    """Read an export of Nsight Systems: calls, device work, waits and ranges of all processes.

    Rows without a time, a thread or another number that they need are left out and counted. Raises
    FormatError, naming the file, when it is no such export or is damaged, and for rows that are
    damaged if `strict`.
    """
    path = Path(path)
    with opened(path) as database:
        if not READ & database.tables.keys():
            raise _nothing(path, database)
        records = Records(path, _base_time_ns(database), Repairs(path, strict))
        for add in (add_calls, add_libraries, add_kernels, add_copies, add_fills, add_graphs):
            add(database, records)
        add_waits(database, records)
        communicators = add_ranges(database, records)
        _count_others(database, records)
        facts = dict(communicators.facts())
        device = _finished(database, records, communicators, facts)
    if not np.any(device.role != Role.SYNC):
        raise _nothing(path, database)
    return _without_idle(quarantine(device))


def _finished(
    database: Database, records: Records, communicators: Communicators, facts: dict[int, Facts]
) -> DeviceTrace:
    """The trace of all records, with what is known of processes and groups."""
    records.collectives += facts.items()
    device = records.finish()
    set_kinds(device)
    device.kind[list(facts)] = Kind.COLLECTIVE
    device.blocks[records.waited_for] = True
    pids = _busy(device)
    ranks = _mpi_ranks(database) or communicators.ranks(pids)
    device.groups = communicators.groups(ranks)
    device.process_names = _process_names(database)
    device.labels = {pid: {f"rank {rank}"} for pid, rank in ranks.items()}
    device.rank = ranks.get(pids[0]) if len(pids) == 1 else None
    return device


def _base_time_ns(database: Database) -> int:
    """When the session began, since the Unix epoch; 0 where the export does not say."""
    if _EPOCH not in database.tables.get(SESSION, ()):
        return 0
    told = database.numbers(SESSION, (_EPOCH,))[_EPOCH].tolist()
    return next((time for time in told if 0 <= time < _FAR_NS), 0)


def _mpi_ranks(database: Database) -> dict[int, int]:
    rows = database.numbers(MPI_RANKS, ("globalTid", "rank"))
    told = zip(pid_of(rows["globalTid"]).tolist(), rows["rank"].tolist(), strict=True)
    return {pid: rank for pid, rank in told if rank_number(rank) is not None}


def _process_names(database: Database) -> dict[int, str]:
    needed = ("globalPid",)
    pids = pid_of(database.numbers(PROCESSES, needed)["globalPid"]).tolist()
    names = database.texts(PROCESSES, needed, "name")
    return {pid: name for pid, name in zip(pids, names, strict=True) if name}


def _count_others(database: Database, records: Records) -> None:
    """Count the events of tables that are not read, each with the reason."""
    for table, columns in database.tables.items():
        if table in LEFT_OUT or (table not in READ and not columns.isdisjoint(TIMES)):
            reason = LEFT_OUT.get(table, UNKNOWN_TABLE)
            records.leave_out(table, reason, database.count(table))


def _busy(device: DeviceTrace) -> list[int]:
    """The processes that use a device; all, if none does."""
    return distinct(device.process[device.role != Role.OP]) or distinct(device.process)


def _without_idle(device: DeviceTrace) -> DeviceTrace:
    """The trace without processes that use no device, as workers of a data loader, if others do."""
    own = np.isin(device.process, _busy(device))
    return device if own.all() else device.select(own, IDLE_PROCESS)


def _nothing(path: Path, database: Database) -> FormatError:
    tables = ", ".join(sorted(database.tables)[:4]) or "none"
    return FormatError(
        "the database holds no calls, no device work and no ranges that Nsight Systems recorded "
        f"(tables: {tables}{', …' * (len(database.tables) > 4)})",
        path=path,
        remedy=_PROFILE,
    )
