"""The nodes of a trace with copies of some of them behind: whose time it is, whom they name."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from chakra_et.columns import NO_ROW, Mask, Rows, count_up
from chakra_et.definitions import Kind
from chakra_et.model import Nodes, TimeParts, Trace, time_parts
from chakra_et.passes.edit import REFERENCES, drop_attribute, set_attribute


class Extended:
    """A trace's nodes and copies behind them: row r is like row `like[r]` of the trace.

    Copies are numbered from 0, too. What names a node, or holds time of it, has that of the copy of
    this node that was made together with it, and else of the node itself.
    """

    def __init__(self, trace: Trace, like: list[Rows], together: list[Rows]) -> None:
        self._nodes = trace.nodes
        self.like = np.concatenate(like)
        self._count = len(trace.nodes)
        self._copied = self.like[self._count :]
        self._together = np.concatenate([*together, np.zeros(0, np.int64)])
        first = int(trace.nodes.id.max(initial=0)) + 1
        new = np.arange(first, first + len(self._copied), dtype=np.uint64)
        self.ids: npt.NDArray[np.uint64] = np.concatenate([trace.nodes.id, new])
        self._keys = self._together * self._count + self._copied
        self._along = np.argsort(self._keys, kind="stable")

    def nodes(self, rows: Rows, new_row: Rows) -> Nodes:
        """The nodes of some rows, which get the rows `new_row`."""
        made = self._nodes.take(self.like[rows])
        made.id = self.ids[rows]
        copies = np.arange(len(self._copied))
        for name in REFERENCES:
            columns = self._nodes.attributes.named(name)
            if not columns or not len(copies):
                continue
            named = np.full(self._count, NO_ROW, np.int64)
            for column in columns:
                named[column.rows] = self._nodes.rows_of(np.asarray(column.values, np.uint64))
            told = self._beside(copies, named[self._copied])
            at = new_row[self._count :]
            drop_attribute(made.attributes, name, at[at >= 0])
            chosen = np.flatnonzero((told >= 0) & (at >= 0))
            chosen = chosen[np.argsort(at[chosen])]
            set_attribute(made.attributes, name, Kind.UINT64, at[chosen], self.ids[told[chosen]])
        return made

    def parts(self, own: tuple[Mask, Rows], bare: Rows, rest: Rows, gone: Mask) -> TimeParts:
        """Whose time it is: parts of copies, too, which own what the copied ones owned.

        `own` says which nodes have another own time, and which. Nodes in `bare` hold no time of
        others; what others own after the own time of row r comes after that of `rest[r]`.
        """
        parts = time_parts(self._nodes)
        low, high = (np.searchsorted(parts.node, self._copied, side) for side in ("left", "right"))
        each = np.repeat(np.arange(len(self._copied)), high - low)
        part = count_up(high - low) + low[each]
        whose = parts.owner[part]
        beside = self._beside(each, whose)
        owner = np.where(beside >= 0, beside, whose)
        owner = np.where(whose == self._copied[each], self._count + each, owner)
        node = np.concatenate([parts.node, self._count + each])
        owner = np.concatenate([parts.owner, owner])
        ns = np.concatenate([parts.ns, parts.ns[part]])
        mine = owner == node
        ns = np.where(mine & own[0][node], own[1][node], ns)
        alone = np.zeros(len(self.like), np.bool_)
        alone[bare] = True
        kept = mine | ~alone[node]
        kept &= ~gone[node] & ((owner < 0) | ~gone[owner])
        return _with_rest(TimeParts(node[kept], owner[kept], ns[kept]), rest)

    def _beside(self, copies: Rows, rows: Rows) -> Rows:
        """The copy of each row made together with a copy, else -1; of several, the last."""
        if not len(self._along):
            return np.full(len(copies), NO_ROW, np.int64)
        wanted = self._together[copies] * self._count + rows
        place = np.searchsorted(self._keys, wanted, "right", sorter=self._along) - 1
        other = self._along[place]
        return np.where((rows >= 0) & (place >= 0) & (self._keys[other] == wanted),
                        self._count + other, NO_ROW)  # fmt: skip


def _with_rest(parts: TimeParts, onto: Rows) -> TimeParts:
    """The parts, where what others own after a node's own time comes after that of another one."""
    own = np.flatnonzero(parts.own)
    place = np.zeros(len(onto), np.int64)
    place[parts.node[own]] = own
    after = np.arange(len(parts.node)) > place[parts.node]
    node = np.where(after, onto[parts.node], parts.node)
    order = np.concatenate([np.flatnonzero(~after), np.flatnonzero(after)])
    order = order[np.argsort(node[order], kind="stable")]
    return TimeParts(node[order], parts.owner[order], parts.ns[order])
