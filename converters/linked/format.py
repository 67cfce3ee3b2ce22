"""Linked traces as a format."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from chakra_et.converters.format import Format, Head, View
from chakra_et.converters.pytorch.format import RECOGNISE, identify
from chakra_et.patterns import lazy_pattern

_LINKED: Final = lazy_pattern(rb'"(?:inclusive_dur|exclusive_dur|inter_thread_dep)"\s*:')


def _recognise(head: Head) -> int | None:
    """Such a file is a host trace with more keys."""
    place = RECOGNISE(head)
    return None if place is None or _LINKED.search(head.text) is None else place


def _read(path: Path, strict: bool) -> Any:
    from chakra_et.converters.linked.reader import read_linked

    return read_linked(path, strict=strict)


def _describe(linked: Any) -> dict[str, Any]:
    from chakra_et.recording import Role

    return {
        "schema": linked.host.schema,
        "process": linked.host.pid,
        "host nodes": len(linked.host),
        "host nodes with a time": int((linked.stated.record >= 0).sum()),
        "device nodes": len(linked.device.rows(Role.WORK)),
    }


FORMAT: Final = Format(
    name="linked host and device trace (JSON of another tool)",
    view=View.BOTH,
    recognise=_recognise,
    remedy="It holds both views; give it alone: `chakra convert FILE -o OUT.et`.",
    identify=identify,
    read=_read,
    describe=_describe,
)
