"""Nsight Systems' SQLite export as a format."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from chakra_et.converters.format import Format, Head, View
from chakra_et.patterns import lazy_pattern

_SQLITE: Final = b"SQLite format 3\x00"
_TABLES: Final = lazy_pattern(rb"StringIds|CUPTI_ACTIVITY_KIND_|NVTX_EVENTS|TARGET_INFO_")
"""Names of which the definitions of tables, at the beginning of the file, hold at least one."""


def _recognise(head: Head) -> int | None:
    return 0 if head.start.startswith(_SQLITE) and _TABLES.search(head.start) else None


def _read(path: Path, strict: bool) -> Any:
    from chakra_et.converters.nsight.reader import read_device

    return read_device(path, strict=strict)


def _describe(device: Any) -> dict[str, Any]:
    return {"records": sum(device.totals.values()), **device.totals}


FORMAT: Final = Format(
    name="database of Nsight Systems",
    view=View.DEVICE,
    recognise=_recognise,
    remedy="`chakra convert FILE -o OUT.et` makes an ET of it; of several processes, "
    "`chakra convert FILE -o DIR` makes one of each.",
    read=_read,
    describe=_describe,
)
