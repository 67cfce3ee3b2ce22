"""Edges of one kind, as they are found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chakra_et.model import EdgeKind

Rows = npt.NDArray[np.int64]


@dataclass
class EdgeList:
    """Edges of one kind between rows of the activity table; `target[i]` waits for `source[i]`."""

    kind: EdgeKind
    source: Rows
    target: Rows
    inferred: npt.NDArray[np.bool_]

    @classmethod
    def certain(cls, kind: EdgeKind, source: Rows, target: Rows) -> EdgeList:
        """Edges that the inputs record."""
        return cls(kind, source, target, np.zeros(len(source), np.bool_))

    @classmethod
    def joined(cls, lists: list[EdgeList]) -> EdgeList:
        """The edges of some lists of one kind."""
        return cls(
            lists[0].kind,
            np.concatenate([found.source for found in lists]),
            np.concatenate([found.target for found in lists]),
            np.concatenate([found.inferred for found in lists]),
        )

    def select(self, chosen: npt.NDArray[np.bool_]) -> EdgeList:
        """Some of the edges."""
        return EdgeList(self.kind, self.source[chosen], self.target[chosen], self.inferred[chosen])

    def __len__(self) -> int:
        return len(self.source)
