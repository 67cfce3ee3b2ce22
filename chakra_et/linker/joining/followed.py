"""Which threads the profiler followed: by default the one that started it and what it runs."""

from __future__ import annotations

from typing import Final

from chakra_et.codes import among, distinct
from chakra_et.columns import NO_ROW
from chakra_et.linker.activities import Activities
from chakra_et.recording import HostTrace

_TOLD: Final = 0.1
"""The share of operations without a time for which a person is told."""


def unfollowed_warnings(table: Activities, host: HostTrace | None) -> list[str]:
    """What to say where operations have no time since the profiler did not follow their threads."""
    if host is None or not (table.lane[: len(host)] != NO_ROW).any():
        return []
    operations = ~host.is_root & (host.op_schema != host.op_schemas.get("", NO_ROW))
    timed = table.lane[: len(host)] != NO_ROW
    followed = among(host.thread, host.thread[operations & timed])
    threads = distinct(host.thread[operations & ~followed])
    without, count = int((operations & ~followed).sum()), int(operations.sum())
    if without <= _TOLD * count:
        return []
    return [
        f"{without} of {count} operators have no time: they ran on {len(threads)} threads that the "
        "profiler did not follow; pass experimental_config="
        "_ExperimentalConfig(profile_all_threads=True) to it"
    ]
