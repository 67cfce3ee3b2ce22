"""Edges of one kind, as they are found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chakra_et.linker.evidence import Codes, Evidence, guessed
from chakra_et.model import EdgeKind

Rows = npt.NDArray[np.int64]


@dataclass
class EdgeList:
    """Edges of one kind between rows of the activity table; `target[i]` waits for `source[i]`.

    `evidence[i]` is the `Evidence` that edge i rests on.
    """

    kind: EdgeKind
    source: Rows
    target: Rows
    evidence: Codes

    @classmethod
    def by(cls, evidence: Evidence, source: Rows, target: Rows) -> EdgeList:
        """Edges that all rest on the same evidence."""
        return cls(evidence.kind, source, target, np.full(len(source), evidence, np.uint8))

    @classmethod
    def joined(cls, lists: list[EdgeList]) -> EdgeList:
        """The edges of some lists of one kind."""
        return cls(
            lists[0].kind,
            np.concatenate([found.source for found in lists]),
            np.concatenate([found.target for found in lists]),
            np.concatenate([found.evidence for found in lists]),
        )

    @property
    def inferred(self) -> npt.NDArray[np.bool_]:
        """Which edges were guessed rather than recorded."""
        return guessed(self.evidence)

    def select(self, chosen: npt.NDArray[np.bool_]) -> EdgeList:
        """Some of the edges."""
        return EdgeList(self.kind, self.source[chosen], self.target[chosen], self.evidence[chosen])

    def __len__(self) -> int:
        return len(self.source)
