"""Work on devices: kernels, copies, memory that is set, and graphs that were traced as a whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np

from chakra_et.codes import codes
from chakra_et.columns import Rows
from chakra_et.converters.nsight.database import MISSING, Database, Numbers
from chakra_et.converters.nsight.records import Records, distinct, pid_of
from chakra_et.converters.nsight.schema import (
    COPIES,
    COPY_KINDS,
    COPY_NAMES,
    FILLS,
    GRAPHS,
    KERNELS,
    MEMORIES,
    MEMORY_NAMES,
    PAGEABLE,
    SHAPE,
    TO_HOST,
)
from chakra_et.recording import NO_ID, Role

_NEEDED: Final = ("start", "end", "deviceId", "streamId")
_OPTIONAL: Final = {"correlationId": NO_ID, "globalPid": MISSING}
_DIRECTION: Final = re.compile(r"_([HDAP])TO([HDAP])$")
_PLACES: Final = 1 << 20
"""More than there are kinds of copies or memories, so that three of them fit into one number."""


def add_kernels(database: Database, records: Records) -> None:
    """Take in kernels, those of graphs that were traced node by node included."""
    more = ("demangledName", "shortName", *(c for columns in SHAPE.values() for c in columns))
    rows = database.numbers(KERNELS, _NEEDED, _OPTIONAL | dict.fromkeys(more, MISSING))
    full = rows["demangledName"]
    chosen = full.copy()
    chosen[full == MISSING] = rows["shortName"][full == MISSING]
    row = _add(records, "kernel", records.named(chosen, database), rows)
    records.args.update(zip(row.tolist(), _shapes(rows), strict=True))


def _shapes(rows: Numbers) -> list[str]:
    """What each kernel carries beside its times: how it was launched."""
    columns = [rows[column] for group in SHAPE.values() for column in group]
    code = codes(*columns)
    _, first = np.unique(code, return_index=True)
    texts = [_shape(iter(numbers)) for numbers in np.stack(columns, axis=1)[first].tolist()]
    return [texts[i] for i in code.tolist()]


def _shape(numbers: Iterator[int]) -> str:
    parts = {name: [next(numbers) for _ in columns] for name, columns in SHAPE.items()}
    told = {
        name: part if len(part) > 1 else part[0]
        for name, part in parts.items()
        if MISSING not in part
    }
    return msgspec.json.encode(told).decode() if told else ""


def add_fills(database: Database, records: Records) -> None:
    """Take in memory that is set."""
    rows = database.numbers(FILLS, _NEEDED, _OPTIONAL | {"bytes": NO_ID, "memKind": -1})
    memories = MEMORIES | database.named(MEMORY_NAMES, "label")
    kinds = distinct(rows["memKind"])
    texts = {kind: f"Memset ({memories.get(kind, 'Unknown')})" for kind in kinds}
    name = records.coded(rows["memKind"], texts)
    _add(records, "gpu_memset", name, rows, size_bytes=rows["bytes"])


def add_graphs(database: Database, records: Records) -> None:
    """Take in launches of graphs of which the report holds no nodes."""
    rows = database.numbers(GRAPHS, _NEEDED, _OPTIONAL | {"graphId": NO_ID})
    texts = {number: f"CUDA graph {number}" for number in distinct(rows["graphId"])}
    _add(records, "cuda_graph", records.coded(rows["graphId"], texts), rows)


def add_copies(database: Database, records: Records) -> None:
    """Take in copies, with the names that PyTorch's profiler gives them.

    A call waits for a copy to pageable memory of the host, whatever the call is called.
    """
    kinds = {"bytes": NO_ID, "copyKind": 0, "srcKind": -1, "dstKind": -1}
    rows = database.numbers(COPIES, _NEEDED, _OPTIONAL | kinds)
    directions = _directions(database)
    memories = MEMORIES | database.named(MEMORY_NAMES, "label")
    kind, source, target = (rows[n] % _PLACES for n in ("copyKind", "srcKind", "dstKind"))
    key = (kind * _PLACES + source) * _PLACES + target
    texts = {
        k: _copy_name(k // _PLACES**2, k // _PLACES % _PLACES, k % _PLACES, directions, memories)
        for k in distinct(key)
    }
    row = _add(records, "gpu_memcpy", records.coded(key, texts), rows, size_bytes=rows["bytes"])
    pageable = [m for m, name in memories.items() if name.lower() == PAGEABLE]
    records.waited_for += row[(kind == TO_HOST) & np.isin(target, pageable)].tolist()


def _copy_name(
    kind: int, source: int, target: int, directions: dict[int, str], memories: dict[int, str]
) -> str:
    ways = (memories.get(place, "Unknown") for place in (source, target))
    return f"Memcpy {directions.get(kind, 'Unknown')} ({' -> '.join(ways)})"


def _directions(database: Database) -> dict[int, str]:
    """What kinds of copies are called: by the names in the export, else by CUPTI's numbers."""
    names, labels = (database.named(COPY_NAMES, column) for column in ("name", "label"))
    told = {kind: match.expand(r"\1to\2") for kind, text in names.items()
            if (match := _DIRECTION.search(text))}  # fmt: skip
    return labels | COPY_KINDS | told


def _add(records: Records, category: str, name: Rows, rows: Numbers, **columns: Rows) -> Rows:
    records.lose(category, rows.lost)
    return records.add(
        Role.WORK,
        category,
        name,
        start=rows["start"],
        end=rows["end"],
        process=pid_of(rows["globalPid"]),
        pid=rows["deviceId"],
        tid=rows["streamId"],
        device=rows["deviceId"],
        stream=rows["streamId"],
        correlation=rows["correlationId"],
        **columns,
    )
