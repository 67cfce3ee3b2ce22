"""Edges between nodes: who waits for whom, and why."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt

from chakra_et.codes import begins, order_of
from chakra_et.definitions import EdgeKind
from chakra_et.kernel import kernel


class Edges:
    """Edges in compressed rows: node row r waits for `source[offsets[r]:offsets[r + 1]]`.

    `source` holds node *ids*, as files do: an edge to an id that no node has stays visible.
    `kind` holds `EdgeKind` values, `inferred` marks edges that were guessed rather than recorded.
    Within a row, edges keep their order; those of kind `CALL` come first.
    """

    __slots__ = ("inferred", "kind", "offsets", "source")

    def __init__(
        self,
        offsets: npt.NDArray[np.int64],
        source: npt.NDArray[np.uint64],
        kind: npt.NDArray[np.uint8],
        inferred: npt.NDArray[np.bool_],
    ) -> None:
        self.offsets = np.asarray(offsets, np.int64)
        self.source = np.asarray(source, np.uint64)
        self.kind = np.asarray(kind, np.uint8)
        self.inferred = np.asarray(inferred, np.bool_)
        if not len(self.source) == len(self.kind) == len(self.inferred) == self.offsets[-1]:
            raise ValueError("edge columns differ in length")

    @classmethod
    def empty(cls, count: int) -> Edges:
        """No edges between `count` nodes."""
        return cls(
            np.zeros(count + 1, np.int64),
            np.zeros(0, np.uint64),
            np.zeros(0, np.uint8),
            np.zeros(0, np.bool_),
        )

    @classmethod
    def collect(
        cls,
        count: int,
        target: npt.NDArray[np.int64],
        source: npt.NDArray[np.uint64],
        kind: npt.NDArray[np.uint8],
        inferred: npt.NDArray[np.bool_],
    ) -> Edges:
        """Edges from parallel arrays in any order; `target` holds node rows, `source` node ids.

        Of two edges with one target and one source, the first given wins, but a call edge and
        another one may stand side by side, as they are written to different fields.
        """
        places = cls.in_rows(target, source, kind)
        return cls.from_rows(count, target[places], source[places], kind[places], inferred[places])

    @staticmethod
    def in_rows(
        target: npt.NDArray[np.int64],
        source: npt.NDArray[np.uint64],
        kind: npt.NDArray[np.uint8],
        *lesser: npt.NDArray[np.bool_],
    ) -> npt.NDArray[np.int64]:
        """The places of edges in the order in which rows hold them, each edge once.

        Of equal ones that is the first, of those that are not `lesser` if there are such.
        """
        other = kind != EdgeKind.CALL
        module = kernel()
        if module is not None and len(lesser) < 2 and len(target):
            worse = lesser[0] if lesser else np.zeros(len(target), np.bool_)
            found = module.edges_in_rows(target, source, other, worse, int(target.max()) + 1)
            if found is not None:
                return cast(npt.NDArray[np.int64], found)
        order = order_of(target, other, source, *lesser)
        first = begins(target[order], other[order], source[order])
        places: npt.NDArray[np.int64] = order[first]
        return places

    @classmethod
    def from_rows(
        cls,
        count: int,
        target: npt.NDArray[np.int64],
        source: npt.NDArray[np.uint64],
        kind: npt.NDArray[np.uint8],
        inferred: npt.NDArray[np.bool_],
    ) -> Edges:
        """Edges from parallel arrays in the order of `in_rows`."""
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(target, minlength=count), out=offsets[1:])
        return cls(offsets, source, kind, inferred)

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        kinds = ", ".join(f"{count} {kind.label}" for kind, (count, _) in self.counts().items())
        return f"<Edges {len(self)}: {kinds}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Edges):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("offsets", "source", "kind", "inferred")
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def target(self) -> npt.NDArray[np.int64]:
        """The node row that each edge leads to, int64[number of edges]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def counts(self) -> dict[EdgeKind, tuple[int, int]]:
        """For each kind that occurs: the number of edges, and how many of them are inferred."""
        total = np.bincount(self.kind, minlength=len(EdgeKind))
        guessed = np.bincount(self.kind[self.inferred], minlength=len(EdgeKind))
        return {k: (int(total[k]), int(guessed[k])) for k in EdgeKind if total[k]}

    def into(self, row: int) -> list[tuple[int, EdgeKind, bool]]:
        """Source id, kind and inferred flag of each edge into node `row`."""
        span = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        return [
            (int(s), EdgeKind(int(k)), bool(i))
            for s, k, i in zip(self.source[span], self.kind[span], self.inferred[span], strict=True)
        ]

    def select(self, mask: npt.NDArray[Any]) -> Edges:
        """The edges of `mask` (one flag for each edge), in the same rows."""
        offsets = np.zeros(len(self.offsets), np.int64)
        np.cumsum(mask, out=(running := np.zeros(len(mask), np.int64)))
        ends = self.offsets[1:]
        offsets[1:] = np.where(ends > 0, running[np.maximum(ends - 1, 0)], 0) if len(mask) else 0
        places = np.flatnonzero(mask)
        return Edges(
            offsets, self.source.take(places), self.kind.take(places), self.inferred.take(places)
        )
