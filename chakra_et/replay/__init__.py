"""Replay: run a trace by its edges, and see what a change would give."""

from chakra_et.replay.critical import CriticalPath
from chakra_et.replay.edit import move_after
from chakra_et.replay.engine import Plan, Times, run
from chakra_et.replay.figures import Breakdown, Figures
from chakra_et.replay.network import AlphaBeta, TransferModel, network_of
from chakra_et.replay.processors import Processors
from chakra_et.replay.replay import Replay, replay
from chakra_et.replay.selectors import select

__all__ = [
    "AlphaBeta",
    "Breakdown",
    "CriticalPath",
    "Figures",
    "Plan",
    "Processors",
    "Replay",
    "Times",
    "TransferModel",
    "move_after",
    "network_of",
    "replay",
    "run",
    "select",
]
