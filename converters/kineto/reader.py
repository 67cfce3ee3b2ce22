"""Reading profiles into columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from chakra_et.codes import among, recoded
from chakra_et.columns import Rows
from chakra_et.converters.kineto.account import give_account, label
from chakra_et.converters.kineto.arguments import read_arguments
from chakra_et.converters.kineto.arrows import ARROW_PHASES, ArrowReader
from chakra_et.converters.kineto.categories import (
    DEVICE_CATEGORIES,
    FIRST_GRAPH_FLOW,
    FORWARD_FLOWS,
    GRAPH_FLOWS,
    LAUNCH_FLOWS,
    LEFT_OUT,
    NO_STREAM,
    ROLES,
)
from chakra_et.converters.kineto.compiled import (
    KEPT_ROLES,
    ProfilePiece,
    ProfileRecords,
    profile_decoder,
    tells_communication,
)
from chakra_et.converters.kineto.events import DeviceArgs, Event, OpArgs
from chakra_et.converters.kineto.kinds import set_kinds
from chakra_et.converters.kineto.makers import expect_records
from chakra_et.converters.kineto.phases import BEGIN, END, interval, pair
from chakra_et.converters.kineto.roles import NO_ROLE, give_roles
from chakra_et.converters.kineto.run_facts import read_metadata
from chakra_et.converters.kineto.sanity import NO_TIME, quarantine
from chakra_et.converters.times import nanoseconds, time_or_none
from chakra_et.growing import Growing
from chakra_et.io.memory import collection_paused, give_back
from chakra_et.io.records import Layout, missing_array, read_records
from chakra_et.io.repairs import Repairs
from chakra_et.pool import Pool
from chakra_et.recording import NO_ID, DeviceTrace, Role
from chakra_et.recording.carried_texts import MANY, CarriedTexts
from chakra_et.recording.device_trace import COLUMNS
from chakra_et.shown import several

LAYOUT: Final = Layout(Event, "traceEvents", ("ph", "name"), "schemaVersion", profile_decoder)
_EVENTS: Final = msgspec.json.Decoder(list[Event])
_OP_ARGS: Final = msgspec.json.Decoder(list[OpArgs])
_DEVICE_ARGS: Final = msgspec.json.Decoder(list[DeviceArgs])
_ARG_COLUMNS: Final[tuple[tuple[str, int, tuple[str, ...], bool, bool], ...]] = (
    ("external_id", 0, ("external_id", "early_external_id"), True, True),
    ("rf_id", 0, ("rf_id",), True, True),
    ("sequence", -1, ("sequence",), True, False),
    ("fwd_thread", 0, ("fwd_thread",), True, False),
    ("correlation", NO_ID, ("correlation", "connection"), False, True),
    ("stream", NO_ID, ("original_stream", "stream", "queue", "stream_id"), False, True),
    ("size_bytes", NO_ID, ("bytes",), False, True),
    ("device", NO_ID, ("device", "in_device", "device_id"), False, True),
)
"""Columns made of arguments: the value of records without it, the fields of which the first that
is there counts, and whether operations and other records can have it."""
_ROW_NAMES: Final = {"thread_name": "name", "process_name": "name", "process_labels": "labels"}
"""Records that name a thread or a process, and the argument that holds the name."""
_FOUND_LATER: Final = ("kind", "blocks")
_SHAPES: Final = attrgetter("shapes")
_ODD_ARGS: Final = "arguments that are not an object"
_LATEST_NS: Final = 1 << 62
_HELD: Final = 1 << 20
"""So many records are taken from the kernel at once: here, their columns take less room."""
_FIRST: Final = 1000
"""So many records are looked at for marks of who wrote the file."""
_FURTHER: Final = ("M", BEGIN, END)
Times: TypeAlias = Rows
V = TypeVar("V")


def read_device(path: str | Path, *, strict: bool = False) -> DeviceTrace:
    """Read a profile of Kineto, or of a vendor's profiler in its dialect.

    Damage is mended where that is possible, and counted in `repairs`; what cannot be mended is
    left out and counted. Raises FormatError, naming file and place, when the file is no profile,
    and for any damage if `strict`.
    """
    return read_columns(path, Columns, strict)


@collection_paused()
def read_columns(
    path: str | Path,
    columns: Callable[[str | Path, Repairs], Columns],
    strict: bool,
    layout: Layout[Event] = LAYOUT,
) -> DeviceTrace:
    """The profile in a file, of whose records `columns` take what they hold."""
    read = read_records(path, layout, lambda repairs: columns(path, repairs), strict=strict)
    if not read.found:
        raise missing_array(path, LAYOUT, "Check that Kineto wrote this profile.")
    device = quarantine(read.columns.finish(read.metadata, read.repairs))
    expect_records(device, read.columns.marks())
    give_account(device)
    set_kinds(device)
    read_arguments(device)
    if isinstance(device.args, CarriedTexts):
        del read  # It holds the columns as they were.
        give_back()
    read_metadata(device)
    return device


class Columns:
    """Records as they come in, in arrays that grow."""

    def __init__(self, path: str | Path, repairs: Repairs) -> None:
        self.path = Path(path)
        self.repairs = repairs
        self.counts: Counter[tuple[str, str]] = Counter()
        self.categories: Pool[str] = Pool()
        self.names: Pool[str] = Pool()
        self.odd_ids: Pool[str] = Pool()
        self.shape_texts: Pool[bytes] = Pool({b"": 0})
        self.columns = Growing()
        self.args: list[str] | CarriedTexts = []
        self.process_names: dict[int, str] = {}
        self.left_out: Counter[tuple[str, str]] = Counter()
        self.launch_flows = ArrowReader(LAUNCH_FLOWS, across=True)
        self.forward_flows = ArrowReader(FORWARD_FLOWS)
        self.graph_flows = ArrowReader(GRAPH_FLOWS, FIRST_GRAPH_FLOW)
        self.labels: dict[int, set[str]] = {}
        self.phases: list[Event] = []
        self._first: bytes | list[Event] = b""
        self._held: ProfilePiece | None = None
        self._held_count = 0

    def add(self, piece: list[Event] | ProfilePiece, /) -> None:
        """Take in some records.

        What the kernel has read it holds until that is much, others come, or the end.
        """
        if isinstance(piece, ProfilePiece):
            self._held, self._first = piece, piece.first or self._first
            self._held_count += len(piece)
            if self._held_count >= _HELD:
                self._take_held()
        else:
            self._take_held()
            self._add_events(piece)

    def marks(self) -> Iterator[str]:
        """Names, processes and threads of the first records."""
        first = self._first
        events = _EVENTS.decode(b"[%b]" % first) if isinstance(first, bytes) else first
        for event in events[:_FIRST]:
            yield from map(str, (event.name, event.pid, event.tid))

    def _take_held(self) -> None:
        """Take in the records that the kernel holds."""
        if self._held is not None:
            records, self._held, self._held_count = self._held.take(), None, 0
            self._add_columns(records)

    def _add_columns(self, piece: ProfileRecords) -> None:
        """Take in records that are columns already."""
        self.counts.update({(cat, phase): number for cat, phase, number in piece.counts})
        self._add_further(_EVENTS.decode(piece.others))
        for flows in (self.launch_flows, self.forward_flows, self.graph_flows):
            flows.add_columns(piece.arrow_categories, piece.arrows)
        columns = piece.columns
        for name in ("role", "pid", "tid", "start_ns", "duration_ns"):
            self._put(name, columns[name])
        self._put_distinct("category", self.categories, piece.categories, columns["category"])
        self._put_distinct("name", self.names, piece.names, columns["name"])
        for (name, *_), values in zip(_ARG_COLUMNS, piece.numbers, strict=True):
            self._put(name, values)
        self._put_distinct("shapes", self.shape_texts, piece.shapes, columns["shapes"])
        self._carry(piece.args)

    def _carry(self, args: list[str]) -> None:
        """Take in what is carried of records; of a long recording it is packed."""
        if isinstance(self.args, list) and len(self.args) + len(args) >= MANY:
            self.args = CarriedTexts(self.args)
        self.args.extend(args)

    def _put_distinct(
        self, name: str, pool: Pool[V], distinct: list[V], codes: npt.NDArray[np.int32]
    ) -> None:
        """Put codes into a list of distinct values, as codes into the pool."""
        self._put(name, recoded(codes, np.array(list(map(pool.__getitem__, distinct)), np.int32)))

    def _add_events(self, events: list[Event]) -> None:
        """Take in records as objects."""
        if not self.counts:
            self._first = events[:_FIRST]
        counts = Counter([(event.cat, event.ph) for event in events])
        self.counts.update(counts)
        if any(phase in _FURTHER for _, phase in counts):
            self._add_further(events)
        arrows = [event for event in events if event.ph in ARROW_PHASES]
        if any(category in LAUNCH_FLOWS for category, _ in counts):
            self.launch_flows.add(arrows, self._integers)
        if any(category in FORWARD_FLOWS for category, _ in counts):
            self.forward_flows.add(arrows, self._integers)
        if any(category in GRAPH_FLOWS for category, _ in counts):
            self.graph_flows.add(arrows, self._integers)
        self._add_spans([e for e in events if e.ph == "X" and e.cat not in LEFT_OUT])

    def _add_further(self, events: list[Event]) -> None:
        """Take in the names of rows, and the halves of intervals."""
        for event in events:
            if event.ph == "M" and event.name in _ROW_NAMES:
                self._name_row(event)
        self.phases += [event for event in events if event.ph in (BEGIN, END)]

    def _add_spans(self, spans: list[Event]) -> None:
        """Take in records that last."""
        if not spans:
            return
        times, spans = self._timed(spans)
        category = np.array(
            list(map(self.categories.__getitem__, [e.cat for e in spans])), np.int64
        )
        roles = [ROLES.get(known, NO_ROLE) for known in self.categories]
        role = np.array(roles, np.uint8)[category]
        self._put("role", role)
        self._put("category", category)
        self._put("name", list(map(self.names.__getitem__, [e.name for e in spans])))
        self._put("pid", self._integers([e.pid for e in spans], 0))
        self._put("tid", self._integers([e.tid for e in spans], 0))
        self._put("start_ns", times[0])
        self._put("duration_ns", times[1])
        self._add_args(spans, role)

    def _name_row(self, event: Event) -> None:
        # Ids that are text get their numbers in the order of the file, those of threads too.
        pid = int(self._integers([event.pid, event.tid], 0)[0])
        try:
            name = str(msgspec.json.decode(bytes(event.args)).get(_ROW_NAMES[event.name]))
        except (msgspec.DecodeError, AttributeError, RecursionError):
            return
        if event.name != "thread_name":
            self.labels.setdefault(pid, set()).add(name)
        if event.name == "process_name":
            self.process_names[pid] = name

    def _timed(self, spans: list[Event]) -> tuple[list[Times], list[Event]]:
        """Starts and durations, and the records that have them."""
        starts: list[Any] = [event.ts for event in spans]
        lasting: list[Any] = [event.dur or b"0" for event in spans]
        try:
            return [nanoseconds(starts), nanoseconds(lasting)], spans
        except ValueError:
            starts, lasting = list(map(bytes, starts)), list(map(bytes, lasting))
        known = {text: time_or_none(text) for text in {*starts, *lasting}}
        good: list[int] = []
        lost: list[int] = []
        for place, texts in enumerate(zip(starts, lasting, strict=True)):
            (lost if None in (known[texts[0]], known[texts[1]]) else good).append(place)
        self.left_out.update((label(spans[place].cat, "X"), NO_TIME) for place in lost)
        if lost and self.repairs.strict:
            name = spans[lost[0]].name
            self.repairs.leave_out(f"the time of event {name!r} is not a number", None)
        times = [nanoseconds([texts[place] for place in good]) for texts in (starts, lasting)]
        return times, [spans[place] for place in good]

    def _add_args(self, spans: list[Event], role: npt.NDArray[np.uint8]) -> None:
        raw: list[Any] = [event.args or b"{}" for event in spans]
        is_op = role == Role.OP
        ops, others = np.flatnonzero(is_op), np.flatnonzero(~is_op)
        op_args = self._decode(_OP_ARGS, spans, raw, ops)
        device_args = self._decode(_DEVICE_ARGS, spans, raw, others)

        for name, default, fields, of_ops, of_others in _ARG_COLUMNS:
            values = np.full(len(spans), default, np.int64)
            for rows, args, wanted in ((ops, op_args, of_ops), (others, device_args, of_others)):
                if wanted:
                    values[rows] = self._integers(_first_told(args, fields, default), default)
            self._put(name, values)
        shapes = np.zeros(len(spans), np.int32)
        if ops.size:
            texts = map(bytes, map(_SHAPES, op_args))
            shapes[ops] = list(map(self.shape_texts.__getitem__, texts))
        self._put("shapes", shapes)
        names = [event.name for event in spans]
        tells = {name: tells_communication(name) for name in set(names)}
        carried = among(role, KEPT_ROLES) | np.array(list(map(tells.__getitem__, names)), np.bool_)
        args = [""] * len(spans)
        for row in np.flatnonzero(carried).tolist():
            args[row] = bytes(raw[row]).decode("utf-8", "replace")
        self._carry(args)

    def _decode(
        self,
        decoder: msgspec.json.Decoder[list[Any]],
        spans: list[Event],
        raw: list[bytes],
        rows: Rows,
    ) -> list[Any]:
        try:
            return decoder.decode(b"[" + b",".join([raw[row] for row in rows.tolist()]) + b"]")
        except (msgspec.DecodeError, RecursionError):
            return [self._decode_one(decoder, raw, row) for row in rows.tolist()]

    def _decode_one(
        self, decoder: msgspec.json.Decoder[list[Any]], raw: list[bytes], row: int
    ) -> Any:
        try:
            return decoder.decode(b"[%b]" % bytes(raw[row]))[0]
        except (msgspec.DecodeError, RecursionError):
            self.repairs.mend(_ODD_ARGS, None)
            raw[row] = b"{}"
            return decoder.decode(b"[{}]")[0]

    def _integers(self, values: list[Any], default: int) -> Rows:
        """Ids, most of them integers; text of digits counts, other text gets a number below -1."""
        try:
            column = np.array(values, np.int64)
        except (TypeError, ValueError, OverflowError):
            column = np.zeros((0, 0), np.int64)
        if column.ndim == 1:
            return column
        return np.array([self._integer(value, default) for value in values], np.int64)

    def _integer(self, value: Any, default: int) -> int:
        if value is None:
            return default
        if isinstance(value, (int, float)) and abs(value) < 1 << 63:
            return int(value)
        if isinstance(value, str) and len(value) > 40:
            return -2 - self.odd_ids[value]
        try:
            number = int(str(value), 0)
        except ValueError:
            return -2 - self.odd_ids[str(value)]
        except RecursionError:
            return default
        return number if abs(number) < 1 << 63 else -2 - self.odd_ids[str(value)]

    def _put(self, name: str, values: Any) -> None:
        self.columns.put(name, np.asarray(values, COLUMNS[name]))

    def finish(self, metadata: dict[str, Any], repairs: Repairs) -> DeviceTrace:
        base = metadata.get("baseTimeNanoseconds", 0)
        base_time_ns = base if isinstance(base, int) and abs(base) < _LATEST_NS else 0
        self._take_held()
        warnings = []
        if metadata.get("displayTimeUnit") == "ns":
            warnings.append("displayTimeUnit is ns, a hint to viewers; times were read as us")
        warnings += self._add_phases()
        for text, code in self.odd_ids.items():
            self.labels.setdefault(-2 - code, set()).add(text)
        columns: dict[str, Any] = {
            name: self.columns.column_for(DeviceTrace, name, dtype)
            for name, dtype in COLUMNS.items()
            if name not in (*_FOUND_LATER, "stream", "start_ns")
        }
        stream, start = map(self.columns.column, ("stream", "start_ns"))
        self.columns = Growing()
        columns["stream"] = np.where(np.isin(stream, NO_STREAM), NO_ID, stream)
        far = np.abs(start) >= _LATEST_NS
        columns["start_ns"] = np.where(far, start, start + base_time_ns)
        device = DeviceTrace.of(
            self.path,
            len(start),
            repairs,
            metadata=metadata,
            base_time_ns=base_time_ns,
            counts=dict(self.counts),
            categories=self.categories,
            names=self.names,
            shape_texts=self.shape_texts,
            args=self.args,
            warnings=warnings,
            work_categories=DEVICE_CATEGORIES,
            left_out=self.left_out,
            process_names=self.process_names,
            labels=self.labels,
            launch_flows=self.launch_flows.pairs(base_time_ns),
            forward_flows=self.forward_flows.pairs(base_time_ns),
            graph_flows=self.graph_flows.pairs(base_time_ns),
            **columns,
        )
        if far.any():
            device = device.select(~far, NO_TIME)
        return give_roles(device)

    def _add_phases(self) -> list[str]:
        """Take in intervals of two records each; the first of them counts as one of phase X."""
        pairs = pair(self.phases)
        self._add_spans([interval(*both) for both in pairs if both[0].cat not in LEFT_OUT])
        for begin, end in pairs:
            self.counts[begin.cat, BEGIN] -= 1
            self.counts[begin.cat or end.cat, "X"] += 1
        self.counts = +self.counts
        single = len(self.phases) - 2 * len(pairs)
        return [
            f"{several(single, 'record tells', 'records tell')} "
            "the beginning or the end of an interval only (phases B and E) "
            "and were left out"
        ] * bool(single)


def _first_told(args: list[Any], fields: tuple[str, ...], default: int) -> list[Any]:
    """The first of the given fields that each record has; few files use more than one."""
    columns = [list(map(attrgetter(name), args)) for name in fields]
    told = [column for column in columns if column.count(default) < len(column)]
    values = told[0] if told else columns[0]
    for others in told[1:]:
        values = [
            other if value == default else value
            for value, other in zip(values, others, strict=True)
        ]
    return values
