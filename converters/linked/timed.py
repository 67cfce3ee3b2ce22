"""Host traces whose nodes a tool has given times, as PARAM's linker did in 2023: `ts` and `dur`."""

from __future__ import annotations

from typing import Final

import numpy as np

from chakra_et.columns import NO_ROW, UNTIMED
from chakra_et.converters.kineto.sanity import quarantine
from chakra_et.converters.linked.records import as_records
from chakra_et.recording import HostTrace, Recording, Role, Stated

NO_BASE: Final = "times count from a base that the file does not tell"
EPOCH_NS: Final = 10**18
"""Times before the year 2001 do not count from the Unix epoch."""


def with_own_times(host: HostTrace) -> Recording:
    """A host trace with times as a recording that states their ties, without device work."""
    rows = np.flatnonzero(host.start_ns != UNTIMED)
    device = quarantine(as_records(host, rows, [], host.start_ns[rows], host.duration_ns[rows]))
    record = np.full(len(host), NO_ROW, np.int64)
    record[device.external_id - 1] = device.rows(Role.OP)
    device.external_id = np.zeros_like(device.external_id)
    launcher = np.full(len(device), NO_ROW, np.int64)
    warnings = [NO_BASE] * bool(len(device) and device.start_ns.max() < EPOCH_NS)
    return Recording(host, device, Stated(record, launcher), warnings)
