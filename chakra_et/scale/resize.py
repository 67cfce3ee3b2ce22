"""A trace with the sizes that it has among more ranks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.model import Trace
from chakra_et.scale.calls import Calls, GroupKey
from chakra_et.scale.changes import Changes, Resized
from chakra_et.scale.collectives import Collectives, Growth
from chakra_et.scale.optimizer import resize_optimizer

_OF_RANKS: Final = ("global_rank_start", "global_rank_stride", "in_split_size", "out_split_size")
"""Attributes that tell ranks of a group, or a number for each: they differ between copies."""


def resize(trace: Trace, calls: Calls, growth: Mapping[GroupKey, Growth]) -> Resized:
    """Change a trace, in place, by the growth of the groups that its calls name."""
    changes = Changes(trace)
    collectives = Collectives(changes)
    # All-gathers come last: sums tell how the parts are cut that they put together.
    gathers = [call.collective == CollectiveType.ALL_GATHER for call in calls.calls]
    for number in sorted(range(len(gathers)), key=gathers.__getitem__):
        call = calls.calls[number]
        grows = growth.get(call.group) if call.group is not None else None
        if grows is not None:
            rows = calls.rows[calls.call_of == number]
            changes.set("pg_size", rows, grows.new)
            if call.type == NodeType.COMM_COLL:
                collectives.resize(call, rows, grows)
    divided = next((grows for grows in growth.values() if grows.divides), None)
    if divided is not None or collectives.lengths:
        resize_optimizer(changes, collectives.lengths, divided or next(iter(growth.values())))
    of_groups = [number for number, call in enumerate(calls.calls) if call.group is not None]
    for name in _OF_RANKS:
        changes.leave_out(name, calls.rows[np.isin(calls.call_of, of_groups)])
    return changes.finish()
