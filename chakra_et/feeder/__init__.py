"""Nodes that are ready, for any simulator. `docs/feeder.md` describes the protocol."""

from chakra_et.feeder.blocked import Blocked, Blocker, Taken, Waiter
from chakra_et.feeder.engine import Counts
from chakra_et.feeder.errors import Code, FeederError
from chakra_et.feeder.feeder import Feeder
from chakra_et.feeder.feeder_set import Collective, FeederSet
from chakra_et.feeder.node import FeederNode, HandedNode
from chakra_et.feeder.options import Next, Options, State

__all__ = [
    "Blocked",
    "Blocker",
    "Code",
    "Collective",
    "Counts",
    "Feeder",
    "FeederError",
    "FeederNode",
    "FeederSet",
    "HandedNode",
    "Next",
    "Options",
    "State",
    "Taken",
    "Waiter",
]
