"""Who called and who launched what: the ties that edges of calls and launches are made of."""

from __future__ import annotations

from chakra_et.linker.activities import Activities
from chakra_et.linker.edges.call import give_callers, take_callers
from chakra_et.linker.edges.launch import launch_warnings, take_launches
from chakra_et.linker.edges.work_callers import (
    attribute,
    attribution_joins,
    attribution_warnings,
    take_arrows,
)
from chakra_et.linker.joining.clocks import align_clocks, clock_warning
from chakra_et.linker.joining.followed import unfollowed_warnings
from chakra_et.linker.notes import Notes
from chakra_et.recording import Recording


def find_ties(table: Activities, recording: Recording, aligned: bool, notes: Notes) -> None:
    """Set launches and callers; if `aligned`, shift times of devices whose clock is behind."""
    host, device = recording.host, recording.device
    if host is not None:
        over = take_callers(table, host)
        notes.warnings += [*unfollowed_warnings(table, host), *over]
    notes.warnings += recording.warnings
    notes.joins += give_callers(table, recording.stated)
    if device is not None:
        take_arrows(table, *take_launches(table, device))
        attribution = attribute(table, device)
        notes.joins += attribution_joins(attribution)
        notes.clocks += align_clocks(table, device, apply=aligned)
        notes.warnings += launch_warnings(table, device)
        notes.warnings += attribution_warnings(attribution)
        notes.warnings += map(clock_warning, notes.clocks)
