"""Kineto profiles as a format."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from chakra_et.converters.format import Format, Head, Identity, View, json_keys, number
from chakra_et.patterns import lazy_pattern

_OBJECT: Final = json_keys(
    rb'"traceEvents"\s*:', rb'"(?:schemaVersion|deviceProperties|baseTimeNanoseconds)"\s*:'
)
_BARE_EVENTS: Final = lazy_pattern(rb'\[\s*(\]|\{.*?"ph"\s*:)', re.DOTALL)
_PID: Final = lazy_pattern(
    rb'"cat"\s*:\s*"(?:cpu_op|user_annotation|cuda_runtime|cuda_driver)"'
    rb'[^{}]*?"pid"\s*:\s*"?(\d{1,18})(?!\d)'
)
_INFO: Final = rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"%s"\s*:\s*(\d{1,9})(?!\d)'
_RANK: Final = lazy_pattern(_INFO % b"rank")
_WORLD: Final = lazy_pattern(_INFO % b"world_size")


def _recognise(head: Head) -> int | None:
    if head.is_json and _BARE_EVENTS.match(head.text):
        return 0
    return _OBJECT(head)


_OURS: Final = lazy_pattern(
    rb'"(?:schemaVersion|deviceProperties|baseTimeNanoseconds|distributedInfo|traceName|stream)"\s*:'
)
"""Keys of PyTorch's profiler, and one of device work, whoever wrote it."""
_CATEGORY: Final = lazy_pattern(rb'"cat"\s*:\s*"([^"\\]*)"')
_MARK: Final = lazy_pattern(rb'"(?:name|pid|tid)"\s*:\s*"([^"\\]*)"|"([\w-]+)"\s*:\s*[{\[tf]')


def _maker(head: Head) -> str | None:
    """Which other program wrote a Chrome trace, as far as its head tells that for sure."""
    if _recognise(head) is None or _OURS.search(head.text):
        return None
    from chakra_et.converters.kineto.makers import is_known, maker_by

    categories = {text.decode("utf-8", "replace") for text in _CATEGORY.findall(head.text)}
    if any(map(is_known, categories)):
        return None
    marks = {(a or b).decode("utf-8", "replace") for a, b in _MARK.findall(head.text)}
    maker = maker_by(categories | marks)
    return None if maker is None else maker[0]


def _identify_other(head: Head) -> Identity:
    what = "none of the records that it begins with has a category that is known here"
    return Identity(detail=f": {what}; it seems to be of {_maker(head)}")


def _identify(head: Head) -> Identity:
    return Identity(number(_PID, head), number(_RANK, head), number(_WORLD, head))


def _read(path: Path, strict: bool) -> Any:
    from chakra_et.converters.kineto.reader import read_device

    return read_device(path, strict=strict)


def _read_window(path: Path, strict: bool, chosen: Any, with_host: bool) -> Any:
    from chakra_et.converters.kineto.window_reader import read_window

    return read_window(path, strict, chosen, with_host=with_host)


def _describe(device: Any) -> dict[str, Any]:
    kinds = {
        f"{category or '(no category)'}, phase {phase}": count
        for (category, phase), count in sorted(device.counts.items())
    }
    return {"records": sum(device.counts.values()), **kinds}


FORMAT: Final = Format(
    name="Kineto profile",
    view=View.DEVICE,
    recognise=_recognise,
    remedy="`chakra convert FILE -o OUT.et` makes an ET of it, with the host trace of the same run "
    "if you add that.",
    identify=_identify,
    read=_read,
    read_window=_read_window,
    describe=_describe,
    schema="kineto_trace.schema.json",
)

OTHER: Final = Format(
    name="a Chrome trace, but not of PyTorch's profiler",
    view=View.NONE,
    recognise=lambda head: None if _maker(head) is None else _recognise(head),
    remedy="Record the run with torch.profiler.profile and export_chrome_trace "
    "(docs/recording.md).",
    identify=_identify_other,
)
"""What others write with the same keys. Where the head does not tell, the reader does."""
