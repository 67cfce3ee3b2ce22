"""What both files say of activities that may communicate, seen from the activity table."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np

from chakra_et.codes import among
from chakra_et.columns import NO_ROW, Mask, Rows
from chakra_et.definitions import NodeType
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication.operand_bytes import NO_TENSOR, argument_bytes, total
from chakra_et.recording import DeviceTrace, Facts, HostTrace, Kind, Request
from chakra_et.recording.libraries import (
    ANNOTATION,
    DEVICE_RANGE,
    HOST_BACKENDS,
    KERNEL,
    operation,
)

ANCESTORS: Final = 8
"""How far up the callers of a launch the record of its collective is looked for."""


class Views:
    """Both files, seen from the activity table."""

    def __init__(
        self, table: Activities, host: HostTrace | None, device: DeviceTrace | None
    ) -> None:
        self.table = table
        self.host = host
        self.device = device
        self.host_names: list[str] = [] if host is None else host.names.in_order
        self.device_names: list[str] = [] if device is None else device.names.in_order
        self._facts: dict[tuple[int, int], Facts | None] = {}  # by rows of both files

    def of(self, table: Activities) -> Views:
        """Both files, seen from another table of them."""
        if table is self.table:
            return self
        same = Views(table, self.host, self.device)
        same._facts = self._facts
        return same

    def name(self, row: int) -> str:
        host_row, record = self.table.host.item(row), self.table.record.item(row)
        if host_row != NO_ROW and self.host is not None:
            return str(self.host_names[self.host.name[host_row]])
        assert self.device is not None
        return str(self.device_names[self.device.name[record]])

    def rows_named(self, chosen: Any, work: bool) -> list[int]:
        """Activities, on a device or on the host, whose name is one of those chosen."""
        rows: list[int] = []
        if self.host is not None and not work:
            mine = np.array([bool(chosen(name)) for name in self.host_names], np.bool_)
            if mine.any():
                own = np.flatnonzero(self.table.host != NO_ROW)
                rows += own[mine[self.host.name[self.table.host[own]]]].tolist()
        if self.device is not None:
            theirs = np.array([bool(chosen(name)) for name in self.device_names], np.bool_)
            if theirs.any():
                at = self._profiled_work if work else self._profiled_only
                rows += at[theirs[self.device.name[self.table.record[at]]]].tolist()
        return rows

    @cached_property
    def _profiled_work(self) -> Rows:
        """Work on a device, of which only the profile tells."""
        return np.flatnonzero(self.table.work & (self.table.host == NO_ROW))

    @cached_property
    def _profiled_only(self) -> Rows:
        """What else only the profile tells of."""
        return np.flatnonzero(~self.table.work & (self.table.host == NO_ROW))

    def library_kernels(self) -> list[int]:
        """Device work that communicates by its name or its arguments."""
        rows = set(self.rows_named(KERNEL.match, work=True))
        if self.device is not None:
            told = [row for row, facts in self.device.collectives.items() if facts.name is not None]
            work = np.flatnonzero(self.table.work)
            rows |= set(work[among(self.table.record[work], told)].tolist())
        return sorted(rows)

    @cached_property
    def host_spans(self) -> list[int]:
        """Spans of process groups that communicate on the host."""
        return self.rows_named(lambda name: name.startswith(HOST_BACKENDS), work=False)

    def records(self) -> list[int]:
        """Records of collectives on the host."""
        return self._records

    @cached_property
    def _records(self) -> list[int]:
        found: list[int] = np.flatnonzero(self.are_records).tolist()
        return found

    def is_record(self, row: int) -> bool:
        """Whether an activity is the record of a collective."""
        return bool(self.are_records[row])

    @cached_property
    def are_records(self) -> Mask:
        """Which activities are records of collectives."""
        table, found = self.table, np.zeros(len(self.table), np.bool_)
        for trace, column in ((self.device, table.record), (self.host, table.host)):
            if trace is not None and len(trace):
                told = trace.kind == Kind.COLLECTIVE
                # The row that stands for none takes the last one's place.
                found = np.where(column == NO_ROW, found, told.take(column))
        return found

    def record_above(self, row: int) -> int:
        """The record of the collective that launched this kernel, or `NO_ROW`."""
        return self._record_from(self.launched_in(row))

    def _record_from(self, row: int) -> int:
        """The innermost record of a collective that is this activity or around it, or `NO_ROW`."""
        for _ in range(ANCESTORS):
            if row == NO_ROW or self.is_record(row):
                return row
            row = self.table.caller.item(row)
        return NO_ROW

    def records_around(self, row: int) -> list[int]:
        """A record and those around it: one collective, as it was asked for and as it is done."""
        found = []
        while row != NO_ROW and self.is_record(row):
            found.append(row)
            row = self._record_from(int(self.table.caller[row]))
        return found

    def launched_in(self, row: int) -> int:
        """The operation around the launch of device work; without a launch, the one it names."""
        launch = int(self.table.launch[row])
        return int(self.table.caller[row if launch == NO_ROW else launch])

    def launched_by(self, row: int, asker: int) -> bool:
        """Whether no operation stands between an asker and the launch of device work."""
        caller = self.launched_in(row)
        while caller not in (NO_ROW, asker) and ANNOTATION.match(self.name(caller)):
            caller = int(self.table.caller[caller])
        return caller == asker

    def device_ranges(self) -> list[int]:
        """Ranges of process groups that communicate on a device."""
        return self.rows_named(_is_device_range, work=False)

    def is_device_range(self, row: int) -> bool:
        """Whether an activity is such a range."""
        return _is_device_range(self.name(row))

    def kind(self, row: int) -> int:
        """What kind of work an activity of a device is."""
        assert self.device is not None
        return int(self.device.kind[self.table.record[row]])

    def device_of(self, row: int) -> int:
        """The device that work runs on, as the profile numbers it."""
        return int(self.table.device[row])

    def argument_bytes_of(self, row: int, dtype: str | None = None) -> list[int | None]:
        """The bytes of the tensors in each argument, from either file, as `argument_bytes` does."""
        host_row, record = self.table.host.item(row), self.table.record.item(row)
        known = None if self.host is None else self.host.operand_bytes.get(host_row)
        found = [size or NO_TENSOR for size in known or ()]
        if any(part != NO_TENSOR for part in found) or record == NO_ROW or self.device is None:
            return list(found)
        operands = self.device.operands.get(record)
        return [] if operands is None else argument_bytes(operands, dtype)

    def kernel_facts(self, row: int) -> Facts:
        """What the profiler's arguments of a kernel say.

        Whoever adds what else is told takes a copy.
        """
        assert self.device is not None
        return self.device.collectives.get(int(self.table.record[row])) or Facts()

    def host_facts(self, row: int) -> Facts | None:
        """What the record of a collective says: its attributes, inputs, and profiled arguments.

        Whoever adds what else is told takes a copy.
        """
        if row == NO_ROW:
            return None
        place = self.table.host.item(row), self.table.record.item(row)
        if place not in self._facts:
            self._facts[place] = self._read_facts(*place)
        return self._facts[place]

    def _read_facts(self, host_row: int, record: int) -> Facts | None:
        told = None if self.host is None else self.host.collectives.get(host_row)
        facts = Facts() if told is None else told.copy()
        if self.device is not None:
            facts.merge(self.device.collectives.get(record))
        return facts if facts.name is not None else None

    def record_tensors(self, row: int, dtype: str | None) -> Facts | None:
        """The size by the tensors of a record, the first of its arguments, where it has shapes.

        `dtype` is the type of the elements, where it is known otherwise.
        """
        size_bytes = None if row == NO_ROW else total(self.argument_bytes_of(row, dtype)[:1])
        if size_bytes is None:
            return None
        return Facts(size_bytes=size_bytes, sources=["input tensors"])

    def has_splits(self, row: int) -> bool:
        """Whether the host node has the split sizes, which are never cut there."""
        return (
            row != NO_ROW and self.host is not None and self.table.host[row] in self.host.all_splits
        )

    def span_facts(self, row: int) -> Facts:
        """What a host backend's span says: its name, and the bytes of its input tensors.

        With whom a message is exchanged is told by the operation that it is for.
        """
        match = ANNOTATION.match(self.name(row))
        facts = Facts(name=match["name"] if match else None, sources=["annotation"])
        host_row = int(self.table.host[row])
        facts.size_bytes = total(self.argument_bytes_of(row))
        if facts.size_bytes is None and host_row != NO_ROW:
            facts.size_bytes = 0
        if facts.size_bytes is not None:
            facts.sources.append("input tensors")
        request = self.request(self.launched_in(row))
        if request is not None and request.message and isinstance(facts.kind, NodeType):
            facts.merge(request.facts)
        return facts

    def rf_id(self, row: int) -> int:
        """The record-function id of an activity, by either file; 0 where there is none."""
        host_row, record = self.table.host.item(row), self.table.record.item(row)
        if host_row != NO_ROW and self.host is not None:
            return int(self.host.rf_id[host_row])
        return 0 if self.device is None else int(self.device.rf_id[record])

    def asking_thread(self, row: int) -> int | None:
        """The thread that asked for what an activity does, as the host trace numbers it."""
        host_row = int(self.table.host[row])
        return None if self.host is None or host_row == NO_ROW else int(self.host.thread[host_row])

    def request(self, row: int) -> Request | None:
        """What an operation tells that asked a backend for a transfer, as the host trace has it."""
        if row == NO_ROW or self.host is None:
            return None
        return self.host.requests.get(int(self.table.host[row]))


def _is_device_range(name: str) -> bool:
    match = ANNOTATION.match(name) if DEVICE_RANGE.match(name) else None
    return match is not None and operation(match["name"]) is not None
