"""Waits: who waits for which stream, and for which call where an event was recorded."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.codes import codes
from chakra_et.columns import EVER, NO_ROW, Rows
from chakra_et.converters.nsight.database import MISSING, Database, Numbers
from chakra_et.converters.nsight.records import Records, distinct, pid_of
from chakra_et.converters.nsight.schema import (
    CALLS,
    EVENTS,
    NONE,
    OTHER_WAIT,
    WAIT_KINDS,
    WAITS,
)
from chakra_et.recording import NO_ID, Kind, Role, Waits
from chakra_et.recording.waits import NOT_TOLD

_OPTIONAL: Final = {
    "deviceId": NOT_TOLD, "streamId": NOT_TOLD, "correlationId": NO_ID, "globalPid": MISSING,
    "eventSyncId": MISSING,
}  # fmt: skip
_CATEGORY: Final = "cuda_sync"


def add_waits(database: Database, records: Records) -> None:
    """Take in the records of waits, and what they are for."""
    needed = ("start", "end", "syncType")
    rows = database.numbers(WAITS, needed, _OPTIONAL | {"eventId": MISSING})
    kinds = distinct(rows["syncType"])
    texts = {kind: WAIT_KINDS[kind][1] if kind in WAIT_KINDS else OTHER_WAIT for kind in kinds}
    row = records.add(
        Role.SYNC,
        _CATEGORY,
        records.coded(rows["syncType"], texts),
        start=rows["start"],
        end=rows["end"],
        process=pid_of(rows["globalPid"]),
        pid=rows["deviceId"],
        tid=rows["streamId"],
        device=rows["deviceId"],
        stream=_stream(rows),
        correlation=rows["correlationId"],
    )
    records.lose(_CATEGORY, rows.lost)
    records.waits = _waits(database, rows, row)


def _waits(database: Database, rows: Numbers, row: Rows) -> Waits:
    kind = np.full(len(rows), NO_ROW, np.int64)
    for number, (meaning, _) in WAIT_KINDS.items():
        kind[rows["syncType"] == number] = meaning
    about_event = np.isin(kind, (Kind.WAIT_EVENT, Kind.STREAM_WAIT))
    events = database.numbers(EVENTS, ("eventId",), _OPTIONAL)
    record = np.where(about_event, _records_of(database, rows, events), NO_ROW)
    told = record != NO_ROW
    awaited, recorded_by = (np.full(len(rows), NOT_TOLD, np.int64) for _ in range(2))
    awaited[told] = _stream(events)[record[told]]
    recorded_by[told] = events["correlationId"][record[told]]
    stream = np.where(kind == Kind.WAIT_DEVICE, NOT_TOLD, _stream(rows))
    known = kind != NO_ROW
    columns = row, kind, rows["deviceId"], stream, awaited, recorded_by
    return Waits(*(column[known] for column in columns))


def _stream(rows: Numbers) -> Rows:
    return np.where(np.isin(rows["streamId"], NONE), NOT_TOLD, rows["streamId"])


def _records_of(database: Database, waits: Numbers, events: Numbers) -> Rows:
    """The record of an event that each wait is about, or `NO_ROW`.

    Where the export numbers records (`eventSyncId`), it is the one of the same number; else the
    last one of the event that was made before the call that waits.
    """
    sides = (waits, events)
    calls = database.numbers(CALLS, ("start", "globalTid", "correlationId"))
    process = [pid_of(side["globalPid"]) for side in sides]
    made = _made(calls, process, [side["correlationId"] for side in sides])
    made[0] = np.where(made[0] == EVER, waits["start"], made[0]) if len(waits) else made[0]
    ids = [side["eventId"] for side in sides]
    found = _last_before(process, ids, made)
    numbered = [side["eventSyncId"] for side in sides]
    same = _last_before(process, numbered, [np.zeros_like(ids_) for ids_ in ids])
    named = (numbered[0] > 0) & ~np.isin(numbered[0], NONE) & (same != NO_ROW)
    agree = np.zeros(len(waits), np.bool_)
    agree[named] = ids[1][same[named]] == ids[0][named]
    return np.where(agree, same, found)


def _made(calls: Numbers, process: list[Rows], correlation: list[Rows]) -> list[Rows]:
    """When the call with each correlation id of each process began; `EVER` where there is none."""
    own = pid_of(calls["globalTid"])
    key = codes(np.concatenate((own, *process)), np.concatenate((calls["correlationId"],
                                                                 *correlation)))  # fmt: skip
    when = np.full(int(key.max(initial=-1)) + 1, EVER, np.int64)
    when[key[: len(own)]] = calls["start"]
    first = len(own) + len(process[0])
    return [when[key[len(own) : first]], when[key[first:]]]


def _last_before(process: list[Rows], ids: list[Rows], made: list[Rows]) -> Rows:
    """For each of the first side the last of the second with its id, made no later."""
    count = len(ids[0])
    place = codes(np.concatenate(process), np.concatenate(ids))
    time = codes(np.concatenate(made))
    key = place * (int(time.max(initial=0)) + 1) + time
    order = np.argsort(key[count:], kind="stable")
    if len(order) == 0:
        return np.full(count, NO_ROW, np.int64)
    at = np.maximum(np.searchsorted(key[count:][order], key[:count], "right") - 1, 0)
    found: Rows = order[at]
    fits = (place[count:][found] == place[:count]) & (time[count:][found] <= time[:count])
    return np.where(fits, found, NO_ROW)
