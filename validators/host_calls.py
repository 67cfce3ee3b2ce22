"""Communication that a trace has twice: on the device, and as the host's call of it."""

from __future__ import annotations

import numpy as np

from chakra_et.columns import Rows
from chakra_et.definitions import NodeType
from chakra_et.validators.view import TraceView


def calls_of_communication(view: TraceView) -> Rows:
    """Rows of communication marked as host work that is but the call of a device's.

    In a trace with communication on the device, that is what such a communication waits for, and
    what does not even tell its type.
    """
    rows = view.communication
    hosted = rows[view.on_host[rows]]
    on_device = np.zeros(len(view.nodes), np.bool_)
    on_device[rows[~view.on_host[rows]]] = True
    if len(hosted) == 0 or not on_device.any():
        return np.zeros(0, np.int64)
    waited_for = view.source[view.sound_edges & on_device[view.target]]
    vague = (view.nodes.type[hosted] == NodeType.COMM_COLL) & ~view.present("comm_type")[hosted]
    calls: Rows = hosted[vague | np.isin(hosted, waited_for)]
    return calls
