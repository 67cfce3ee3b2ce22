"""Durations of rows, drawn by their tokens and by where they occur in a step."""

from __future__ import annotations

import numpy as np

from chakra_et.columns import Rows
from chakra_et.synth.model import Part
from chakra_et.synth.sketches import SketchTable


class Durations:
    """Draws durations, in ns."""

    def __init__(self, part: Part) -> None:
        self._table = SketchTable([*part.durations, *part.apart], part.grain_ns)
        tokens = len(part.durations)
        latest = max((len(told.sketches) for told in part.occurrences), default=0)
        shape = (part.world.roles, tokens, latest + 1)
        self._place = np.broadcast_to(np.arange(tokens)[:, None], shape).copy()
        for told in part.occurrences:
            own = np.array(told.sketches, np.int64)
            mine = self._place[told.role, told.token, : len(own)]
            mine[own >= 0] = own[own >= 0] + tokens

    def draw(self, role: int, tokens: Rows, turns: Rows, random: np.random.Generator) -> Rows:
        """Durations of rows of a role; `turns` count equal tokens of a step, from 0 on."""
        turns = np.minimum(turns, self._place.shape[2] - 1)
        return self._table.draw(self._place[role, tokens, turns], random)
