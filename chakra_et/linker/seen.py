"""What both files say of activities that may communicate, seen from the activity table."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.converters.kineto import DeviceTrace
from chakra_et.converters.kineto.device_trace import NO_ID
from chakra_et.converters.pytorch import HostTrace
from chakra_et.definitions import NodeType
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication_table import (
    ANNOTATION,
    DEVICE_RANGE,
    HOST_BACKENDS,
    KERNEL,
    operation,
)
from chakra_et.linker.facts import (
    Facts,
    argument_facts,
    attribute_facts,
    message_facts,
    positional_facts,
    tensor_bytes,
)
from chakra_et.linker.nesting import NONE
from chakra_et.linker.shapes import NO_TENSOR, argument_bytes, total

RECORD: Final = "record_param_comms"
ANCESTORS: Final = 8
"""How far up the callers of a launch the record of its collective is looked for."""


class Seen:
    """Both files, seen from the activity table."""

    def __init__(
        self, table: Activities, host: HostTrace | None, device: DeviceTrace | None
    ) -> None:
        self.table = table
        self.host = host
        self.device = device
        self.host_names: list[str] = [] if host is None else host.names.in_order
        self.device_names: list[str] = [] if device is None else device.names.in_order
        self.texts = [] if host is None else host.texts.in_order
        self.attributes: dict[int, dict[str, Any]] = {}
        self._facts: dict[tuple[int, int], Facts | None] = {}  # by rows of both files
        if host is not None:
            for name, attribute in host.attributes.items():
                for row, value in zip(attribute.rows, attribute.values, strict=True):
                    self.attributes.setdefault(row, {})[name] = value

    def of(self, table: Activities) -> Seen:
        """Both files, seen from another table of them."""
        same = copy(self)
        same.table = table
        return same

    def name(self, row: int) -> str:
        host_row, record = int(self.table.host[row]), int(self.table.record[row])
        if host_row != NONE and self.host is not None:
            return str(self.host_names[self.host.name[host_row]])
        assert self.device is not None
        return str(self.device_names[self.device.name[record]])

    def rows_named(self, chosen: Any, work: bool) -> list[int]:
        """Activities, on a device or on the host, whose name is one of those chosen."""
        rows: list[int] = []
        side = self.table.work == work
        own = self.table.host != NONE
        if self.host is not None and not work:
            mine = np.array([bool(chosen(name)) for name in self.host_names], np.bool_)
            at = np.flatnonzero(own)
            rows += at[mine[self.host.name[self.table.host[at]]]].tolist()
        if self.device is not None:
            theirs = np.array([bool(chosen(name)) for name in self.device_names], np.bool_)
            at = np.flatnonzero(side & ~own)
            rows += at[theirs[self.device.name[self.table.record[at]]]].tolist()
        return rows

    def library_kernels(self) -> list[int]:
        """Device work that communicates by its name or its arguments."""
        rows = set(self.rows_named(KERNEL.match, work=True))
        if self.device is not None:
            for row in np.flatnonzero(self.table.work).tolist():
                if b'"Collective name"' in self.device.args[self.table.record[row]]:
                    rows.add(row)
        return sorted(rows)

    def host_spans(self) -> list[int]:
        """Spans of process groups that communicate on the host."""
        return self.rows_named(lambda name: name.startswith(HOST_BACKENDS), work=False)

    def records(self) -> list[int]:
        """Records of collectives on the host."""
        return self.rows_named(lambda name: name == RECORD, work=False)

    def record_above(self, row: int) -> int:
        """The record of the collective that launched this kernel, or `NONE`."""
        return self._record_from(self.launched_in(row))

    def _record_from(self, row: int) -> int:
        """The innermost record of a collective that is this activity or around it, or `NONE`."""
        for _ in range(ANCESTORS):
            if row == NONE or self.name(row) == RECORD:
                return row
            row = int(self.table.caller[row])
        return NONE

    def records_around(self, row: int) -> list[int]:
        """A record and those around it: one collective, as it was asked for and as it is done."""
        found = []
        while row != NONE and self.name(row) == RECORD:
            found.append(row)
            row = self._record_from(int(self.table.caller[row]))
        return found

    def launched_in(self, row: int) -> int:
        """The operation around the launch of device work; without a launch, the one it names."""
        launch = int(self.table.launch[row])
        return int(self.table.caller[row if launch == NONE else launch])

    def launched_by(self, row: int, asker: int) -> bool:
        """Whether no operation stands between an asker and the launch of device work."""
        caller = self.launched_in(row)
        while caller not in (NONE, asker) and ANNOTATION.match(self.name(caller)):
            caller = int(self.table.caller[caller])
        return caller == asker

    def device_ranges(self) -> list[int]:
        """Ranges of process groups that communicate on a device."""
        return self.rows_named(_is_device_range, work=False)

    def is_device_range(self, row: int) -> bool:
        """Whether an activity is such a range."""
        return _is_device_range(self.name(row))

    def category(self, row: int) -> str:
        """The profile's category of device work."""
        assert self.device is not None
        code = self.device.category[self.table.record[row]]
        return str(self.device.categories.in_order[code])

    def device_of(self, row: int) -> int:
        """The device that work runs on, as the profile numbers it."""
        assert self.device is not None
        record = self.table.record[row]
        told = int(self.device.device[record])
        return int(self.device.pid[record]) if told == NO_ID else told

    def argument_bytes_of(self, row: int, dtype: str | None = None) -> list[int | None]:
        """The bytes of the tensors in each argument, from either file, as `argument_bytes` does."""
        host_row, record = int(self.table.host[row]), int(self.table.record[row])
        found = [tensor_bytes(value) or NO_TENSOR for value in self._inputs(host_row)]
        if any(part != NO_TENSOR for part in found) or record == NONE or self.device is None:
            return list(found)
        return argument_bytes(self.device.args[record], dtype)

    def kernel_facts(self, row: int) -> Facts:
        """What the profiler's arguments of a kernel say."""
        assert self.device is not None
        return argument_facts(self.device.args[self.table.record[row]], "kernel args")

    def host_facts(self, row: int) -> Facts | None:
        """What the record of a collective says: its attributes, inputs, and profiled arguments."""
        if row == NONE:
            return None
        place = int(self.table.host[row]), int(self.table.record[row])
        if place not in self._facts:
            self._facts[place] = self._read_facts(*place)
        facts = self._facts[place]
        # Whoever asks adds what else is told.
        return None if facts is None else replace(facts, sources=[*facts.sources])

    def _read_facts(self, host_row: int, record: int) -> Facts | None:
        facts = Facts()
        if host_row != NONE:
            facts.merge(attribute_facts(self.attributes.get(host_row, {})))
            facts.merge(self._positional_facts(host_row))
        if record != NONE and self.device is not None:
            facts.merge(argument_facts(self.device.args[record], "operation args"))
        return facts if facts.name is not None else None

    def record_tensors(self, row: int, dtype: str | None) -> Facts | None:
        """The size by the tensors of a record, the first of its arguments, where it has shapes.

        `dtype` is the type of the elements, where it is known otherwise.
        """
        size_bytes = None if row == NONE else total(self.argument_bytes_of(row, dtype)[:1])
        if size_bytes is None:
            return None
        return Facts(size_bytes=size_bytes, sources=["input tensors"])

    def has_splits(self, row: int) -> bool:
        """Whether the host node has the split sizes, which are never cut there."""
        host_row = NONE if row == NONE else int(self.table.host[row])
        return "in_split_size" in self.attributes.get(host_row, {})

    def span_facts(self, row: int) -> Facts:
        """What a host backend's span says: its name, and the bytes of its input tensors.

        With whom a message is exchanged is told by the operation that it is for.
        """
        match = ANNOTATION.match(self.name(row))
        facts = Facts(name=match["name"] if match else None, sources=["annotation"])
        host_row = int(self.table.host[row])
        facts.size_bytes = total(self.argument_bytes_of(row))
        if facts.size_bytes is None and host_row != NONE:
            facts.size_bytes = 0
        if facts.size_bytes is not None:
            facts.sources.append("input tensors")
        caller = self.launched_in(row)
        caller_host = NONE if caller == NONE else int(self.table.host[caller])
        if caller_host != NONE and isinstance(facts.kind, NodeType):
            facts.merge(message_facts(self.name(caller), self._inputs(caller_host)))
        return facts

    def rf_id(self, row: int) -> int:
        """The record-function id of an activity, by either file; 0 where there is none."""
        host_row, record = int(self.table.host[row]), int(self.table.record[row])
        if host_row != NONE and self.host is not None:
            return int(self.host.rf_id[host_row])
        return 0 if self.device is None else int(self.device.rf_id[record])

    def values(self, row: int) -> list[Any]:
        """The input values of an activity, as the host trace has them."""
        return self._inputs(int(self.table.host[row]))

    def _inputs(self, host_row: int) -> list[Any]:
        if host_row == NONE or self.host is None:
            return []
        try:
            values = msgspec.json.decode(self.texts[self.host.inputs[host_row]][0])
        except (msgspec.DecodeError, RecursionError):
            return []
        return values if isinstance(values, list) else []

    def _positional_facts(self, host_row: int) -> Facts | None:
        return positional_facts(self._inputs(host_row))


def _is_device_range(name: str) -> bool:
    match = ANNOTATION.match(name) if DEVICE_RANGE.match(name) else None
    return match is not None and operation(match["name"]) is not None
