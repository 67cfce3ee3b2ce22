"""The floor under any converter in Python: decode both files to typed objects, and stop.

python tools/decode_floor.py HOST DEVICE
"""

from __future__ import annotations

import gc
import gzip
import sys
from pathlib import Path

import msgspec


class Attribute(msgspec.Struct, gc=False):
    name: str
    value: int | str


class HostNode(msgspec.Struct, gc=False):
    id: int
    name: str
    ctrl_deps: int
    inputs: msgspec.Raw
    outputs: msgspec.Raw
    attrs: list[Attribute]


class HostTrace(msgspec.Struct, gc=False):
    schema: str
    nodes: list[HostNode]


class Args(msgspec.Struct, gc=False):
    external_id: int = msgspec.field(default=0, name="External id")
    rf_id: int = msgspec.field(default=0, name="Record function id")
    sequence: int = msgspec.field(default=-1, name="Sequence number")
    correlation: int = 0
    stream: int = -1


class Event(msgspec.Struct, gc=False):
    ph: str
    name: str
    ts: float
    pid: int | str
    tid: int | str
    dur: float = 0.0
    cat: str = ""
    args: Args | None = None


class DeviceTrace(msgspec.Struct, gc=False):
    events: list[Event] = msgspec.field(name="traceEvents")


def read(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def main() -> None:
    gc.disable()
    host, device = map(Path, sys.argv[1:3])
    nodes = msgspec.json.decode(read(host), type=HostTrace).nodes
    events = msgspec.json.decode(read(device), type=DeviceTrace).events
    print(len(nodes), "nodes,", len(events), "events")


if __name__ == "__main__":
    main()
