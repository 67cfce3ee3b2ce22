"""Kineto profiles as a format."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from chakra_et.converters.format import Format, Head, Identity, View, json_keys, number

_OBJECT: Final = json_keys(
    rb'"traceEvents"\s*:', rb'"(?:schemaVersion|deviceProperties|baseTimeNanoseconds)"\s*:'
)
_BARE_EVENTS: Final = re.compile(rb'\[\s*(\]|\{.*?"ph"\s*:)', re.DOTALL)
_PID: Final = re.compile(
    rb'"cat"\s*:\s*"(?:cpu_op|user_annotation|cuda_runtime|cuda_driver)"'
    rb'[^{}]*?"pid"\s*:\s*"?(\d{1,18})'
)
_RANK: Final = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*(\d{1,9})')


_WORLD: Final = re.compile(rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"world_size"\s*:\s*(\d{1,9})')


def _recognise(head: Head) -> int | None:
    if head.is_json and _BARE_EVENTS.match(head.text):
        return 0
    return _OBJECT(head)


def _identify(head: Head) -> Identity:
    return Identity(number(_PID, head), number(_RANK, head), number(_WORLD, head))


def _read(path: Path, strict: bool) -> Any:
    from chakra_et.converters.kineto.reader import read_device

    return read_device(path, strict=strict)


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
    describe=_describe,
    schema="kineto_trace.schema.json",
)
