"""Memory that is made inside of an operator, not returned by it, and read by others later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chakra_et.columns import Mask, Rows
from chakra_et.converters.pytorch.tensors import tensors_in
from chakra_et.model import Trace
from chakra_et.recording import Tensors


@dataclass(frozen=True)
class Touched:
    """Which node names which storage: one entry of each column for each pair, by storage and row.

    `key` is the pair as one number, ascending.
    """

    key: Rows
    rows: int

    @property
    def row(self) -> Rows:
        """The row of the node."""
        return self.key % self.rows

    def last_before(self, key: Rows) -> Rows:
        """The row of the last pair of the same storage before each key; -1 where there is none."""
        if not len(self.key):
            return np.full(len(key), -1, np.int64)
        place = np.searchsorted(self.key, key) - 1
        found = self.key[np.maximum(place, 0)]
        same = (place >= 0) & (found // self.rows == key // self.rows)
        return np.where(same, found % self.rows, -1)

    def has(self, key: Rows) -> Mask:
        """Which keys are among the pairs."""
        return np.asarray(np.isin(key, self.key))


@dataclass(frozen=True)
class StorageUse:
    """What nodes take and return, and which of it is new: memory that their inputs do not hold."""

    taken: Touched
    returned: Touched
    born: Touched

    @classmethod
    def of(cls, trace: Trace) -> StorageUse:
        """The storages in the inputs and outputs of all nodes of a trace."""
        nodes = trace.nodes
        found = tensors_in(nodes.texts)
        storages, code = np.unique(found.storage, return_inverse=True)
        rows = max(len(nodes), 1)
        if len(storages) * rows >= 1 << 63:
            raise OverflowError(f"{len(storages)} storages and {rows} nodes")
        taken = _pairs(found, code.ravel(), nodes.input_code, rows)
        returned = _pairs(found, code.ravel(), nodes.output_code, rows)
        return cls(
            Touched(taken, rows),
            Touched(returned, rows),
            Touched(np.setdiff1d(returned, taken, assume_unique=True), rows),
        )

    def hidden(self, cover: Rows, outermost: Mask) -> Rows:
        """The outermost nodes inside of which others find memory that they do not return.

        `cover` is the outermost chosen node around each row, -1 where there is none.
        """
        key = self.taken.key[outermost[self.taken.row]]
        birth = self.born.last_before(key)
        maker = np.where(birth >= 0, cover[birth], -1)
        key, maker, reader = (part[maker >= 0] for part in (key, maker, key % self.taken.rows))
        own = key - reader + maker
        told = (maker == reader) | self.returned.has(own) | self.taken.has(own)
        return np.unique(maker[~told])


def _pairs(found: Tensors, storage: Rows, text: np.ndarray, rows: int) -> Rows:
    """Each storage with a node that names it, once, as `storage * rows + row`."""
    using = np.flatnonzero(text >= 0)
    begin, end = found.offsets[text[using]], found.offsets[text[using] + 1]
    count = end - begin
    first = np.repeat(begin - (np.cumsum(count) - count), count)
    place = first + np.arange(int(count.sum()))
    row = np.repeat(using, count)
    sized = found.end[place] > found.begin[place]
    return np.unique(storage[place[sized]] * rows + row[sized])
