"""What both files say of activities that may communicate, seen from the activity table."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np

from chakra_et.converters.kineto import DeviceTrace
from chakra_et.converters.pytorch import HostTrace
from chakra_et.linker.activities import Activities
from chakra_et.linker.communication_table import (
    ANNOTATION,
    HOST_BACKENDS,
    KERNEL,
    RECV,
    SEND,
    operation,
)
from chakra_et.linker.facts import (
    Facts,
    argument_facts,
    attribute_facts,
    message_facts,
    positional_facts,
    size,
    tensor_bytes,
)
from chakra_et.linker.nesting import NONE

RECORD: Final = "record_param_comms"
_ANCESTORS: Final = 8
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
        if host is not None:
            for name, attribute in host.attributes.items():
                for row, value in zip(attribute.rows, attribute.values, strict=True):
                    self.attributes.setdefault(row, {})[name] = value

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

    def kernels(self) -> list[int]:
        """Device work that communicates."""
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
        caller = self._caller(row)
        for _ in range(_ANCESTORS):
            if caller == NONE or self.name(caller) == RECORD:
                return caller
            caller = int(self.table.caller[caller])
        return NONE

    def _caller(self, row: int) -> int:
        """The operation around the launch of device work; without a launch, the one it names."""
        launch = int(self.table.launch[row])
        return int(self.table.caller[row if launch == NONE else launch])

    def annotation_above(self, row: int) -> Facts | None:
        """What the span of a collective around the launch is called: `nccl:all_to_all`."""
        caller = self._caller(row)
        for _ in range(_ANCESTORS):
            if caller == NONE:
                return None
            match = ANNOTATION.match(self.name(caller))
            if match and operation(match["name"]) is not None:
                return Facts(name=match["name"], sources=["annotation"])
            caller = int(self.table.caller[caller])
        return None

    def kernel_facts(self, row: int) -> Facts:
        """What the profiler's arguments of a kernel say."""
        assert self.device is not None
        return argument_facts(self.device.args[self.table.record[row]], "kernel args")

    def host_facts(self, row: int) -> Facts | None:
        """What the record of a collective says: its attributes, inputs, and profiled arguments."""
        if row == NONE:
            return None
        facts = Facts()
        host_row, record = int(self.table.host[row]), int(self.table.record[row])
        if host_row != NONE:
            facts.merge(attribute_facts(self.attributes.get(host_row, {})))
            facts.merge(self._positional_facts(host_row))
        if record != NONE and self.device is not None:
            facts.merge(argument_facts(self.device.args[record], "operation args"))
        return facts if facts.name is not None else None

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
        if host_row != NONE:
            facts.size_bytes = size(tensor_bytes(self._inputs(host_row)))
            facts.sources.append("input tensors")
        caller = self._caller(row)
        caller_host = NONE if caller == NONE else int(self.table.host[caller])
        if caller_host != NONE and operation(facts.name or "") in (SEND, RECV):
            facts.merge(message_facts(self.name(caller), self._inputs(caller_host)))
        return facts

    def _inputs(self, host_row: int) -> list[Any]:
        assert self.host is not None
        try:
            values = msgspec.json.decode(self.texts[self.host.inputs[host_row]][0])
        except (msgspec.DecodeError, RecursionError):
            return []
        return values if isinstance(values, list) else []

    def _positional_facts(self, host_row: int) -> Facts | None:
        return positional_facts(self._inputs(host_row))
