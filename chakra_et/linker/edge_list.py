"""Edges of one kind, as they are found."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.linker.evidence import Codes, Evidence, Rule, guessed
from chakra_et.model import EdgeKind
from chakra_et.shown import several


class EdgeList(msgspec.Struct):
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
    def inferred(self) -> Mask:
        """Which edges were guessed rather than recorded."""
        return guessed(self.evidence)

    def select(self, chosen: Mask) -> EdgeList:
        """Some of the edges."""
        places = np.flatnonzero(chosen)
        return EdgeList(
            self.kind,
            self.source.take(places),
            self.target.take(places),
            self.evidence.take(places),
        )

    def __len__(self) -> int:
        return len(self.source)


def in_time(
    edges: EdgeList,
    excepted: Mask,
    end_ns: Rows,
    begin_ns: Rows,
    warnings: list[str],
) -> EdgeList:
    """Edges whose source has ended when their target begins; others are left out and counted."""
    kept = excepted | (end_ns[edges.source] <= begin_ns[edges.target])
    lost = int(np.count_nonzero(~kept))
    if lost:
        label = edges.kind.label
        warnings.append(
            f"{several(lost, f'{label} edge contradicts', f'{label} edges contradict')} "
            f"the recorded times and {'was' if lost == 1 else 'were'} left out"
        )
    return edges.select(kept)


def by_precedence(found: Mapping[Rule, EdgeList]) -> list[EdgeList]:
    """The edges that rules have found, in the order in which they count."""
    return [found[rule] for rule in sorted(found)]
