"""Calls of the runtime and the driver, and of the libraries that call them."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from chakra_et.columns import Rows
from chakra_et.converters.nsight.database import Database, Numbers
from chakra_et.converters.nsight.records import Records, distinct, pid_of, tid_of
from chakra_et.converters.nsight.schema import CALLS, LIBRARIES
from chakra_et.recording import NO_ID, Role

_NEEDED: Final = ("start", "end", "globalTid", "nameId")
_RUNTIME, _DRIVER, _LIBRARY = "cuda_runtime", "cuda_driver", "cpu_op"
_VERSION: Final = re.compile(r"(?:_pts[dz])?(?:_v\d+)?$")
"""What the profiler adds to names: the version of a call, and how it takes the default stream."""


def plain_name(name: str) -> str:
    """The name of a call as programs write it: `cudaLaunchKernel_v7000` is `cudaLaunchKernel`."""
    return _VERSION.sub("", name)


def add_calls(database: Database, records: Records) -> None:
    """Take in the calls of the runtime and the driver."""
    rows = database.numbers(CALLS, _NEEDED, {"correlationId": NO_ID})
    called = {i: plain_name(database.strings.get(i, "unknown")) for i in distinct(rows["nameId"])}
    runtime = np.array([i for i, name in called.items() if name.startswith("cuda")], np.int64)
    is_runtime = np.isin(rows["nameId"], runtime)
    name = records.coded(rows["nameId"], called)
    for category, mine in ((_RUNTIME, is_runtime), (_DRIVER, ~is_runtime)):
        chosen = np.flatnonzero(mine)
        _add(records, Role.CALL, category, name, rows, chosen)
    records.lose(_RUNTIME, rows.lost)


def add_libraries(database: Database, records: Records) -> None:
    """Take in the calls of cuBLAS and cuDNN, which are operations around those of the runtime."""
    for table in LIBRARIES:
        rows = database.numbers(table, _NEEDED)
        name = records.named(rows["nameId"], database)
        _add(records, Role.OP, _LIBRARY, name, rows, np.arange(len(rows)))
        records.lose(_LIBRARY, rows.lost)


def _add(
    records: Records, role: Role, category: str, name: Rows, rows: Numbers, chosen: Rows
) -> None:
    process = pid_of(rows["globalTid"][chosen])
    columns = {"correlation": rows["correlationId"][chosen]} if role is Role.CALL else {}
    records.add(
        role,
        category,
        name[chosen],
        start=rows["start"][chosen],
        end=rows["end"][chosen],
        process=process,
        pid=process,
        tid=tid_of(rows["globalTid"][chosen]),
        **columns,
    )
