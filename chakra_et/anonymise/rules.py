"""How each attribute that may stay is treated. There is no rule for others: they cannot stay."""

from __future__ import annotations

from enum import Enum
from typing import Final


class Treatment(Enum):
    """What is done to the values of an attribute."""

    AS_IS = "as it is"
    SIZE = "size"
    """Changed by at most the policy's error."""
    TIME = "time"
    """A duration: changed with that of the node."""
    INSTANT = "instant"
    """A point in time: counted from the start of the trace."""
    RANK = "rank"
    NUMBER = "number"
    """Renumbered in the order of appearance."""
    ORDER = "order"
    """Counted anew in the order of the values."""
    GROUP = "group"
    WAIT = "wait"
    """What a call waits for: a stream or a device, renumbered."""
    OWN = "own"
    """Made anew from what the trace has otherwise."""


RULES: Final[dict[str, Treatment]] = {
    **dict.fromkeys(
        ("is_cpu_op", "comm_type", "comm_priority", "involved_dim", "polling", "phase", "layer",
         "micro_batch"),
        Treatment.AS_IS,
    ),
    **dict.fromkeys(("comm_size", "num_ops", "tensor_size"), Treatment.SIZE),
    **dict.fromkeys(
        ("lag_ns", "late_ns", "contention_ns", "return_ns", "inclusive_ns", "exclusive_ns"),
        Treatment.TIME,
    ),
    **dict.fromkeys(("own_start_ns", "release_ns"), Treatment.INSTANT),
    **dict.fromkeys(("comm_src", "comm_dst"), Treatment.RANK),
    **dict.fromkeys(("stream", "device", "thread", "comm_tag"), Treatment.NUMBER),
    "rf_id": Treatment.ORDER,
    "pg_name": Treatment.GROUP,
    "sync_on": Treatment.WAIT,
    **dict.fromkeys(("time_parts", "edge_kinds"), Treatment.OWN),
}  # fmt: skip
PHASES: Final = frozenset({"forward", "backward", "optimizer", "prefill", "decode"})
"""The texts that the attribute `phase` may have; others go."""
