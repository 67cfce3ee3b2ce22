"""PyTorch host traces as a format."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from chakra_et.converters.format import Format, Head, Identity, View, json_keys, number
from chakra_et.patterns import lazy_pattern

# A report of ours has a "schema" and an object "nodes", too.
RECOGNISE: Final = json_keys(rb'"schema"\s*:\s*"[^"]*".*?"nodes"\s*:\s*\[', rb'"nodes"\s*:\s*\[')
_PID: Final = lazy_pattern(rb'"pid"\s*:\s*(\d{1,18})')


def identify(head: Head) -> Identity:
    """The process that the trace names."""
    return Identity(number(_PID, head))


def _read(path: Path, strict: bool) -> Any:
    from chakra_et.converters.pytorch.reader import read_host

    return read_host(path, strict=strict)


def _read_window(path: Path, strict: bool, chosen: Any, _: bool) -> Any:
    from chakra_et.converters.pytorch.window_reader import read_window

    return read_window(path, strict, chosen)


def _describe(host: Any) -> dict[str, Any]:
    return {"schema": host.schema, "process": host.pid, "nodes": len(host)}


FORMAT: Final = Format(
    name="PyTorch host trace",
    view=View.HOST,
    recognise=RECOGNISE,
    remedy="`chakra convert FILE -o OUT.et` makes an ET of it, with the profile of the same run if "
    "you add that.",
    identify=identify,
    read=_read,
    read_window=_read_window,
    describe=_describe,
    schema="host_trace.schema.json",
)
