"""The shapes of profiler records, as far as they are read."""

from __future__ import annotations

from typing import Any

import msgspec

_ABSENT = msgspec.Raw(b"")


class Event(msgspec.Struct, gc=False):
    """Any record. Times stay text: a float64 would round them. `id` is that of a flow arrow."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: Any = None
    tid: Any = None
    ts: msgspec.Raw = _ABSENT
    dur: msgspec.Raw = _ABSENT
    id: Any = None
    args: msgspec.Raw = _ABSENT


class OpArgs(msgspec.Struct, gc=False):
    """Arguments of an operation or annotation."""

    external_id: Any = msgspec.field(default=0, name="External id")
    early_external_id: Any = msgspec.field(default=0, name="external id")
    rf_id: Any = msgspec.field(default=0, name="Record function id")
    sequence: Any = msgspec.field(default=-1, name="Sequence number")
    fwd_thread: Any = msgspec.field(default=0, name="Fwd thread id")
    shapes: msgspec.Raw = msgspec.field(default=_ABSENT, name="Input Dims")


class DeviceArgs(msgspec.Struct, gc=False):
    """Arguments of a runtime call, of device work, or of a wait, by the names of every vendor."""

    external_id: Any = msgspec.field(default=0, name="External id")
    early_external_id: Any = msgspec.field(default=0, name="external id")
    rf_id: Any = msgspec.field(default=0, name="Record function id")
    correlation: Any = -1
    connection: Any = msgspec.field(default=-1, name="connection_id")
    device: Any = -1
    device_id: Any = -1
    stream: Any = -1
    stream_id: Any = -1
    original_stream: Any = -1
    queue: Any = msgspec.field(default=-1, name="sycl queue")
    context: Any = -1
    bytes: Any = -1
    in_device: Any = msgspec.field(default=-1, name="inDevice")
