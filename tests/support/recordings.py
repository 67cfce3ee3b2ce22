"""Small host traces and profiles, made by hand: what a test needs and nothing else."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PID = 4000
MAIN, BACKWARD = 4001, 4002


@dataclass
class HostRecording:
    """A host trace in layout A (`flat`) or E; ids, parents and record-function ids as given."""

    flat: bool = False
    pid: int = PID
    nodes: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.op(1, "[pytorch|profiler|execution_trace|process]", parent=1, tid=0)
        self.op(2, "[pytorch|profiler|execution_trace|thread]", parent=1)

    def op(
        self,
        number: int,
        name: str,
        *,
        parent: int = 2,
        rf_id: int = 0,
        tid: int = 1,
        inputs: tuple[list[Any], list[Any], list[Any]] = ([], [], []),
        outputs: tuple[list[Any], list[Any], list[Any]] = ([], [], []),
        schema: str = "",
        **attrs: Any,
    ) -> HostRecording:
        core = {"rf_id": rf_id, "fw_parent": 0, "seq_id": -1, "scope": 0, "tid": tid, "fw_tid": 0}
        if self.flat:
            sides = {}
            for side, texts in (("input", inputs), ("output", outputs)):
                values, shapes, types = texts
                sides |= {f"{side}s": values, f"{side}_shapes": shapes, f"{side}_types": types}
            node = {"name": name, "id": number, "parent": parent, **core, "op_schema": schema}
            self.nodes.append({**node, **sides})
            return self
        kinds = {"seq_id": "int64", **{n: "string" for n, v in attrs.items() if isinstance(v, str)}}
        attributes = [
            {"name": n, "type": kinds.get(n, "uint64"), "value": v}
            for n, v in {**core, **attrs}.items()
        ]
        attributes.append({"name": "op_schema", "type": "string", "value": schema})
        self.nodes.append(
            {
                "id": number,
                "name": name,
                "ctrl_deps": parent,
                "inputs": dict(zip(("values", "shapes", "types"), inputs, strict=True)),
                "outputs": dict(zip(("values", "shapes", "types"), outputs, strict=True)),
                "attrs": attributes,
            }
        )
        return self

    def write(self, path: Path) -> Path:
        document = {
            "schema": "1.0.1" if self.flat else "1.1.1-chakra.0.0.4",
            "pid": self.pid,
            "time": "2026-01-02 03:04:05",
            "start_ts": 10,
            "nodes": [*self.nodes[1:], self.nodes[0]],
            "finish_ts": 20,
        }
        return write_json(path, document)


@dataclass
class Profile:
    """A profile of torch 2.4 or later: times in microseconds from a base, ids on operations."""

    base_ns: int = 1_700_000_000_000_000_000
    events: list[dict[str, Any]] = field(default_factory=list)
    info: dict[str, Any] = field(default_factory=dict)

    def op(
        self,
        name: str,
        ts: float,
        dur: float,
        *,
        rf_id: int | None = None,
        tid: int = MAIN,
        cat: str = "cpu_op",
        **args: Any,
    ) -> Profile:
        known = {} if rf_id is None else {"Record function id": rf_id}
        return self._add(cat, name, PID, tid, ts, dur, {**known, **args})

    def arrow(self, number: int, begin: tuple[int, float], end: tuple[int, float]) -> Profile:
        """An arrow between two pieces of device work: stream and time of each end."""
        for phase, (stream, ts) in zip("sf", (begin, end), strict=True):
            place = {"pid": 0, "tid": stream, "ts": ts}
            self.events.append({"ph": phase, "cat": "ac2g", "name": "ac2g", "id": number, **place})
        return self

    def wait(self, kind: str, ts: float, correlation: int, **args: Any) -> Profile:
        """The profiler's record of a wait, beside its call."""
        told = {"cuda_sync_kind": kind, "device": 0, "context": 1, "correlation": correlation}
        return self._add("cuda_sync", kind, 0, args.get("stream", 0), ts, 0.5, {**told, **args})

    def flow(self, phase: str, number: int, ts: float, *, tid: int = MAIN) -> Profile:
        """One end of an arrow from a forward ("s") to a backward operation ("f")."""
        end = {"ph": phase, "cat": "fwdbwd", "name": "fwdbwd", "id": number, "ts": ts}
        self.events.append({**end, "pid": PID, "tid": tid})
        return self

    def call(
        self, name: str, ts: float, dur: float, correlation: int, *, tid: int = MAIN
    ) -> Profile:
        args = {"cbid": 211, "correlation": correlation}
        return self._add("cuda_runtime", name, PID, tid, ts, dur, args)

    def kernel(
        self,
        name: str,
        ts: float,
        dur: float,
        correlation: int,
        *,
        stream: int = 7,
        cat: str = "kernel",
        **args: Any,
    ) -> Profile:
        own = {"device": 0, "context": 1, "stream": stream, "correlation": correlation}
        return self._add(cat, name, 0, stream, ts, dur, {**own, **args})

    def _add(
        self, cat: str, name: str, pid: int, tid: int, ts: float, dur: float, args: dict[str, Any]
    ) -> Profile:
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid}
        self.events.append({**event, "ts": ts, "dur": dur, "args": args})
        return self

    def write(self, path: Path) -> Path:
        document = {
            "schemaVersion": 1,
            "deviceProperties": [],
            **({"distributedInfo": self.info} if self.info else {}),
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": self.base_ns,
            "traceEvents": self.events,
            "traceName": "trace.json",
        }
        return write_json(path, document)


def write_json(path: Path, document: Any) -> Path:
    text = json.dumps(document, indent=1).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path
