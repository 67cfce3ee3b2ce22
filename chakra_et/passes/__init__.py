"""Passes: changes of traces with contracts, usable alone or in rows.

>>> from chakra_et import passes
>>> result = passes.drop_bad_edges(traces)
>>> result.modified, result.changes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.passes.astra_sim import (
        drop_lone_collectives,
        drop_metadata_nodes,
        fill_idle_ranks,
        lower_collectives,
    )
    from chakra_et.passes.base import Change, Pass, PassResult, run_passes
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
    from chakra_et.passes.pipelines import Cured, cure, write_for_astra_sim
    from chakra_et.passes.split import show_late_starts, split_host_time, splitting
    from chakra_et.passes.unknown import settle_unknown

__all__ = [
    "Change",
    "Cured",
    "Pass",
    "PassResult",
    "comm_groups",
    "cure",
    "cut_cycles",
    "demote_calls",
    "drop_bad_edges",
    "drop_lone_collectives",
    "drop_metadata_nodes",
    "drop_polls",
    "expect_one_device",
    "fill_idle_ranks",
    "fold_host",
    "lower_broadcasts",
    "lower_collectives",
    "normalise_attributes",
    "number_groups",
    "number_messages",
    "order_collectives",
    "renumber",
    "replay_starts",
    "run_passes",
    "set_version",
    "settle_unknown",
    "show_late_starts",
    "split_devices",
    "split_host_time",
    "splitting",
    "write_for_astra_sim",
]

# Who cuts a graph needs one module of them, and none of the rules that others are about.
_HOMES: Final = {
    **dict.fromkeys(
        ("drop_lone_collectives", "drop_metadata_nodes", "fill_idle_ranks", "lower_collectives"),
        "astra_sim",
    ),
    **dict.fromkeys(("Change", "Pass", "PassResult", "run_passes"), "base"),
    **dict.fromkeys(("lower_broadcasts",), "broadcasts"),
    **dict.fromkeys(
        (
            "cut_cycles",
            "demote_calls",
            "drop_bad_edges",
            "normalise_attributes",
            "renumber",
            "set_version",
        ),
        "clean",
    ),
    **dict.fromkeys(("expect_one_device", "split_devices"), "devices"),
    **dict.fromkeys(("comm_groups", "number_groups", "number_messages"), "groups"),
    **dict.fromkeys(("drop_polls", "fold_host", "replay_starts"), "host_time"),
    **dict.fromkeys(("order_collectives",), "order"),
    **dict.fromkeys(("Cured", "cure", "write_for_astra_sim"), "pipelines"),
    **dict.fromkeys(("show_late_starts", "split_host_time", "splitting"), "split"),
    **dict.fromkeys(("settle_unknown",), "unknown"),
}
__getattr__ = lazily(__name__, _HOMES)
