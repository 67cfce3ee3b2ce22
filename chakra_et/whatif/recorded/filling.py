"""How gradients fill buckets, each summed at once: told by the buckets that a run has.

A bucket takes gradients until it has a certain size (PyTorch's DistributedDataParallel): in the
order in which they were ready once, or, where parameters may stay unused, in that of the
parameters; then what is filled last is summed first. The first one may be full earlier than others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from chakra_et.model import Trace
from chakra_et.whatif.recorded.sums import GradientSum, steps_of

_USUAL: Final = 25 * 2**20
"""What PyTorch takes where nobody says another size."""
Item = TypeVar("Item")


@dataclass(frozen=True)
class Filling:
    """Buckets are full from `cap` bytes on, the one that is filled first from `first` bytes on.

    0 is for one bucket of all. Those in `reverse` are summed from the last to the first.
    """

    first: int
    cap: int
    reverse: bool = False

    def turned(self, items: Sequence[Item]) -> list[Item]:
        """What is in the order of summing in that of filling, or the other way round."""
        return list(items[::-1] if self.reverse else items)

    def parted(self, sizes: Sequence[int]) -> list[list[int]]:
        """Places of gradients in buckets, of their sizes in bytes."""
        found: list[list[int]] = [[]]
        filled = 0
        for place, size in enumerate(sizes):
            cap = self.first if len(found) == 1 else self.cap
            if cap and filled >= cap:
                found.append([])
                filled = 0
            found[-1].append(place)
            filled += size
        return found

    @property
    def told(self) -> str:
        """The same for people."""
        if not self.cap:
            return "one sum in each step"
        first = f", the first from {self.first:,}" if self.first != self.cap else ""
        order = "; filled in the order of parameters" if self.reverse else ""
        return f"a bucket is full from {self.cap:,} bytes on{first}{order}"


def filling_of(trace: Trace, sums: list[GradientSum]) -> Filling:
    """How the sums of a rank, in the order in which they are asked for, were filled."""
    step = steps_of(trace, np.array([one.row for one in sums]))
    mine = [one for one, number in zip(sums, step.tolist(), strict=True) if number == step[0]]
    # What lies behind each other was ready behind each other, or the other way round.
    later = np.concatenate([np.sign(np.diff(trace.nodes.start_ns[one.gradients])) for one in mine])
    return told_by([one.sizes for one in mine], bool(later.sum() < 0))


def told_by(buckets: Sequence[Sequence[int]], against: bool) -> Filling:
    """The way of filling that parts gradients as these buckets do, given by sizes in bytes.

    With `against`, gradients lie in buckets against the order in which they were ready: rather in
    that of parameters.
    """
    if len(buckets) < 2:
        return Filling(0, 0, against)
    ways = [way for reverse in (against, not against)
            for way in _ways(buckets[::-1] if reverse else buckets, reverse)]  # fmt: skip
    most = min(sum(sizes) for sizes in (buckets[1:] if against else buckets[:-1]))
    return ways[0] if ways else Filling(most, most, against)


def _ways(buckets: Sequence[Sequence[int]], reverse: bool) -> list[Filling]:
    """Ways to fill such buckets, in the order of their filling; the last one need not be full."""
    totals = [sum(sizes) for sizes in buckets]
    least = [total - sizes[-1] + 1 for total, sizes in zip(totals, buckets, strict=True)]
    found = []
    if max(least) <= min(totals[:-1]):
        cap = _round(max(least), min(totals[:-1]))
        found.append(Filling(cap, cap, reverse))
    most = min(totals[1:-1], default=max(least[1], _USUAL))
    if max(least[1:]) <= most:
        found.append(Filling(_round(least[0], totals[0]), _round(max(least[1:]), most), reverse))
    return found


def _round(least: int, most: int) -> int:
    """The usual size where it lies between, else a round one if one does."""
    for unit in (_USUAL, 2**20, 2**10):
        rounded = -(-least // unit) * unit
        if least <= rounded <= most:
            return rounded
    return most
