"""Reading profiles into columns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.converters.kineto.categories import ROLES, Role
from chakra_et.converters.kineto.device_trace import NO_ID, DeviceTrace
from chakra_et.converters.kineto.events import DeviceArgs, Event, OpArgs
from chakra_et.converters.kineto.times import nanoseconds
from chakra_et.errors import FormatError
from chakra_et.io.json_array import JsonArray
from chakra_et.io.memory import collection_paused
from chakra_et.io.source import blocks
from chakra_et.pool import Pool

_COMMUNICATION: Final = "record_param_comms"
_OP_ARGS: Final = msgspec.json.Decoder(list[OpArgs])
_DEVICE_ARGS: Final = msgspec.json.Decoder(list[DeviceArgs])


def read_device(path: str | Path) -> DeviceTrace:
    """Read a Kineto profile, plain or compressed, of any of the three ways to write times.

    Raises FormatError, naming file and place, when the file is not one or is damaged.
    """
    events = JsonArray(path, blocks(path), "traceEvents", msgspec.json.Decoder(list[Event]))
    columns = _Columns(path)
    with collection_paused():
        for piece in events:
            columns.add(piece)
    metadata = _metadata(path, events.rest)
    if not events.found:
        raise FormatError(
            'no array "traceEvents"', path=path, remedy="Is this a profile that Kineto wrote?"
        )
    return columns.finish(metadata)


def _metadata(path: str | Path, rest: bytes) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(rest)
    except (msgspec.DecodeError, RecursionError) as error:
        raise FormatError(
            f"what surrounds the events is not valid JSON: {error}",
            path=path,
            remedy="The file may have been cut; export the profile again.",
        ) from error
    if isinstance(document, list):
        return {}
    document.pop("traceEvents", None)
    return dict(document)


class _Columns:
    """Records as they come in, in arrays that are joined at the end."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.categories: Pool[str] = Pool()
        self.names: Pool[str] = Pool()
        self.odd_ids: Pool[str] = Pool()
        self.parts: dict[str, list[npt.NDArray[Any]]] = {}
        self.args: list[bytes] = []
        self.thread_names: dict[tuple[int, int], str] = {}
        self.seen = 0

    def add(self, events: list[Event]) -> None:
        self.counts.update([(event.cat, event.ph) for event in events])
        for event in events:
            if event.ph == "M" and event.name == "thread_name":
                self._name_thread(event)
        spans = [e for e in events if e.ph == "X" and e.cat in ROLES]
        role = np.fromiter((ROLES[e.cat] for e in spans), np.uint8, len(spans))
        self._put("role", role)
        self._put("category", list(map(self.categories.__getitem__, [e.cat for e in spans])))
        self._put("name", list(map(self.names.__getitem__, [e.name for e in spans])))
        self._put("pid", self._integers([e.pid for e in spans], 0))
        self._put("tid", self._integers([e.tid for e in spans], 0))
        self._put("start_ns", self._times(spans, "ts", [bytes(e.ts) for e in spans]))
        self._put("duration_ns", self._times(spans, "dur", [bytes(e.dur) or b"0" for e in spans]))
        self._add_args(spans, role)
        self.seen += len(events)

    def _name_thread(self, event: Event) -> None:
        if isinstance(event.pid, int) and isinstance(event.tid, int):
            try:
                name = msgspec.json.decode(bytes(event.args)).get("name")
            except (msgspec.DecodeError, AttributeError):
                return
            self.thread_names[event.pid, event.tid] = str(name)

    def _times(self, spans: list[Event], field: str, texts: list[bytes]) -> npt.NDArray[np.int64]:
        try:
            return nanoseconds(texts)
        except ValueError as error:
            for event, text in zip(spans, texts, strict=True):
                try:
                    nanoseconds([text])
                except ValueError:
                    raise FormatError(
                        f"{field}: {error}",
                        path=self.path,
                        place=f"event {event.name!r} ({event.cat})",
                    ) from None
            raise

    def _add_args(self, spans: list[Event], role: npt.NDArray[np.uint8]) -> None:
        raw = [bytes(event.args) or b"{}" for event in spans]
        is_op = role == Role.OP
        ops, others = np.flatnonzero(is_op), np.flatnonzero(~is_op)
        op_args = self._decode(_OP_ARGS, spans, raw, ops)
        device_args = self._decode(_DEVICE_ARGS, spans, raw, others)

        def column(default: int, op: Callable[[Any], Any] | None,
                   other: Callable[[Any], Any] | None) -> npt.NDArray[np.int64]:  # fmt: skip
            values = np.full(len(spans), default, np.int64)
            for rows, args, get in ((ops, op_args, op), (others, device_args, other)):
                if get is not None:
                    values[rows] = self._integers(list(map(get, args)), default)
            return values

        self._put("external_id", column(0, lambda a: a.external_id, lambda a: a.external_id))
        self._put("rf_id", column(0, lambda a: a.rf_id, None))
        self._put("sequence", column(-1, lambda a: a.sequence, None))
        self._put("fwd_thread", column(0, lambda a: a.fwd_thread, None))
        self._put("correlation", column(NO_ID, None, lambda a: a.correlation))
        self._put("stream", column(NO_ID, None, lambda a: a.stream))
        self._put("context", column(NO_ID, None, lambda a: a.context))
        self._put("size_bytes", column(NO_ID, None, lambda a: a.bytes))
        device = column(NO_ID, None, lambda a: a.device if a.device != NO_ID else a.in_device)
        self._put("device", device)
        carried = (role == Role.WORK) | (role == Role.SYNC)
        self.args += [
            text if keep or event.name == _COMMUNICATION else b""
            for text, keep, event in zip(raw, carried.tolist(), spans, strict=True)
        ]

    def _decode(
        self,
        decoder: msgspec.json.Decoder[list[Any]],
        spans: list[Event],
        raw: list[bytes],
        rows: npt.NDArray[np.int64],
    ) -> list[Any]:
        try:
            return decoder.decode(b"[" + b",".join([raw[row] for row in rows]) + b"]")
        except msgspec.DecodeError as error:
            match = re.search(r"\$\[(\d+)\]", str(error))
            event = spans[rows[int(match[1])]] if match else None
            where = "an event" if event is None else f"event {event.name!r} ({event.cat})"
            raise FormatError(
                f"args: {str(error).split(' - at ')[0]}", path=self.path, place=where
            ) from error

    def _integers(self, values: list[Any], default: int) -> npt.NDArray[np.int64]:
        """Ids, most of them integers; text of digits counts, other text gets a number below -1."""
        try:
            return np.array(values, np.int64)
        except (TypeError, ValueError, OverflowError):
            return np.array([self._integer(value, default) for value in values], np.int64)

    def _integer(self, value: Any, default: int) -> int:
        if value is None:
            return default
        if isinstance(value, (int, float)) and abs(value) < 1 << 63:
            return int(value)
        try:
            number = int(str(value), 0)
        except ValueError:
            return -2 - self.odd_ids[str(value)]
        return number if abs(number) < 1 << 63 else -2 - self.odd_ids[str(value)]

    def _put(self, name: str, values: Any) -> None:
        dtype = {"role": np.uint8, "category": np.int32, "name": np.int32}.get(name, np.int64)
        self.parts.setdefault(name, []).append(np.asarray(values, dtype))

    def _joined(self, name: str) -> npt.NDArray[Any]:
        return np.concatenate(self.parts[name]) if self.parts else np.zeros(0, np.int64)

    def finish(self, metadata: dict[str, Any]) -> DeviceTrace:
        base = metadata.get("baseTimeNanoseconds", 0)
        base_time_ns = base if isinstance(base, int) else 0
        warnings = []
        if metadata.get("displayTimeUnit") == "ns":
            warnings.append("displayTimeUnit is ns, a hint to viewers; times were read as us")
        columns = {name: self._joined(name) for name in (
            "role", "category", "name", "pid", "tid", "start_ns", "duration_ns", "correlation",
            "external_id", "rf_id", "sequence", "fwd_thread", "device", "stream", "context",
            "size_bytes",
        )}  # fmt: skip
        columns["start_ns"] = columns["start_ns"] + base_time_ns
        return DeviceTrace(
            path=self.path,
            metadata=metadata,
            base_time_ns=base_time_ns,
            counts=dict(self.counts),
            categories=self.categories,
            names=self.names,
            args=self.args,
            thread_names=self.thread_names,
            warnings=warnings,
            **columns,
        )
