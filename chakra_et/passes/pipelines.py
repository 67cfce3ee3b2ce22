"""Rows of passes for a purpose."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from chakra_et.errors import ChakraError
from chakra_et.files import write
from chakra_et.io.output import atomic_output
from chakra_et.model import TraceSet
from chakra_et.passes.astra_sim import (
    drop_lone_collectives,
    drop_metadata_nodes,
    fill_idle_ranks,
    lower_collectives,
)
from chakra_et.passes.base import Change, Pass, run_passes
from chakra_et.passes.broadcasts import lower_broadcasts
from chakra_et.passes.clean import (
    cut_cycles,
    demote_calls,
    drop_bad_edges,
    normalise_attributes,
    renumber,
    set_version,
)
from chakra_et.passes.devices import expect_one_device, split_devices
from chakra_et.passes.groups import comm_groups, number_groups, number_messages
from chakra_et.passes.host_time import drop_polls, fold_host, replay_starts
from chakra_et.passes.order import order_collectives
from chakra_et.passes.split import show_late_starts, splitting
from chakra_et.passes.unknown import settle_unknown
from chakra_et.run_directory import run_directory
from chakra_et.validators import Validation, profile, run_rules
from chakra_et.validators.inputs import from_traces

ASTRA_SIM: Final = "astra-sim"
TARGETS: Final = (ASTRA_SIM,)
"""Consumers that traces can be made ready for."""

Host = Literal["fold", "keep"]


@dataclass
class Cured:
    """Traces after their cures, what was changed, and what is still wrong."""

    traces: TraceSet
    changes: dict[str, list[Change]]
    """By pass."""
    left: Validation
    """What the rules of the target say of the result."""

    def as_dict(self) -> dict[str, Any]:
        """The cures as they stand in a report."""
        return {
            "changes": {name: [c.as_dict() for c in made] for name, made in self.changes.items()},
            "left": [
                {
                    "rule": o.rule.id,
                    "severity": o.severity.label,
                    "count": o.count,
                    "title": o.rule.title,
                    "first": o.findings[0].evidence,
                }
                for o in self.left.outcomes
            ],
        }


def passes_for(
    target: str | None,
    *,
    host: Host = "fold",
    cut: bool = False,
    split_ns: int | None = None,
) -> list[Pass]:
    """The passes that make traces sound or, with a target, ready for a consumer.

    Parts of host time of `split_ns` or more become nodes, where that is given and the host's nodes
    are kept.
    """
    row = [set_version, demote_calls, normalise_attributes, drop_bad_edges]
    if cut:
        row.append(cut_cycles)
    if split_ns is not None and (target is None or host == "keep"):
        row.append(splitting(split_ns))
    if target is None:
        return [*row, renumber]
    if target != ASTRA_SIM:
        raise ChakraError(f"no cures for {target!r}", remedy=f"Known: {', '.join(TARGETS)}.")
    # Only folded host time tells when a device waited for another one.
    row.append(split_devices if host == "fold" else expect_one_device)
    row += [drop_metadata_nodes, renumber]
    row += [replay_starts, fold_host] if host == "fold" else [drop_polls, show_late_starts]
    return [
        *row,
        settle_unknown,
        number_groups,
        drop_lone_collectives,
        lower_broadcasts,
        lower_collectives,
        number_messages,
        renumber,
        order_collectives,
        fill_idle_ranks,
    ]


def cure(
    traces: TraceSet,
    target: str | None = None,
    *,
    host: Host = "fold",
    cut: bool = False,
    split_ns: int | None = None,
) -> Cured:
    """Cure what can be cured without guessing, and tell what is left.

    `target` is a consumer to make the traces ready for; `host` says whether host time is folded
    into the device's or kept as nodes; `cut` allows to drop an edge of each cycle; parts of host
    time of `split_ns` or more become nodes. Raises ChakraError for traces that no cure helps.
    """
    passes = passes_for(target, host=host, cut=cut, split_ns=split_ns)
    cured, changes = run_passes(passes, traces)
    # A simulator is given the file of groups, too.
    groups = comm_groups(cured) if target == ASTRA_SIM else None
    left = run_rules(from_traces(cured, groups), profile(target or "core"))
    return Cured(cured, changes, left)


def write_for_astra_sim(
    traces: TraceSet, directory: Path, prefix: str, force: bool = False
) -> list[Path]:
    """Write `{prefix}.{rank}.et` for each rank and `comm_groups.json`; the paths written.

    Raises OutputError where ranks of another run lie in the directory, unless `force` may remove
    them.
    """
    with run_directory(directory, prefix, force) as run:
        for rank, trace in traces.items():
            write(trace, run.path(f"{prefix}.{rank}.et"))
        with atomic_output(run.path("comm_groups.json")) as stream:
            stream.write(msgspec.json.encode(comm_groups(traces)) + b"\n")
    return [directory / name for name in run.sources]
