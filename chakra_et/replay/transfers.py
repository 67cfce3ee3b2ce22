"""Waiting and transfer: when the members of a communication end, once the last has started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.model import UNKNOWN_NS
from chakra_et.replay.columns import Columns
from chakra_et.replay.matching import Match
from chakra_et.replay.network import TransferModel


@dataclass
class Transfers:
    """Times in ns from the start of a communication's last member.

    `common[m]` is what match m takes for all its members. `of_members` holds when each ends, of all
    matches one after the other; it is negative for one that ended before the last had started.
    """

    common: Rows
    of_members: Rows

    def longer(self, factor: npt.NDArray[np.float64], members: Sequence[int]) -> Transfers:
        """The common part of each match times a factor; matches have so many `members`."""
        common = np.rint(self.common * factor).astype(np.int64)
        return Transfers(common, self.of_members + np.repeat(common - self.common, members))


def transfer_times(
    ranks: Sequence[Columns],
    durations: Sequence[Rows],
    offsets: Sequence[int],
    matches: Sequence[tuple[Match, dict[int, int]]],
    network: TransferModel | None,
) -> Transfers:
    """What each match takes once its last member is there, and what each member takes beyond that.

    On the aligned clocks the recording tells when the last member started, and when each ended. The
    shortest time between is the common part: the network's. It follows the shortest of the
    durations to run with, or is what the network model says. What a member took beyond it is its
    own, and follows its own duration. Where waits were taken out, durations tell both parts. Where
    times were not recorded, the shortest duration is all that is known.
    """
    common, of_members = [], []
    for match, members in matches:
        recorded = [int(ranks[i].duration[row]) for i, row in members.items()]
        given = [int(durations[i][row]) for i, row in members.items()]
        shortest, beyond = min(recorded), [0] * len(members)
        if all(ranks[i].met[row] != UNKNOWN_NS for i, row in members.items()):
            beyond = [ns - shortest for ns in recorded]
        elif all(ranks[i].timed[row] for i, row in members.items()):
            begins = [int(ranks[i].begin[row]) - offsets[i] for i, row in members.items()]
            ends = [begin + took for begin, took in zip(begins, recorded, strict=True)]
            shortest = max(min(ends) - max(begins), 0)
            beyond = [end - max(begins) - shortest for end in ends]
        if network is not None:
            took = network.transfer_ns(match.collective, match.size_bytes, list(match.members))
        else:
            took = _in_proportion(shortest, min(recorded), min(given))
        common.append(took)
        of_members += [
            took + (_in_proportion(own, before, now) if own > 0 and before else own)
            for own, before, now in zip(beyond, recorded, given, strict=True)
        ]
    return Transfers(np.array(common, np.int64), np.array(of_members, np.int64))


def _in_proportion(part: int, whole: int, now: int) -> int:
    """What a part of a duration becomes when the whole changes; all of it if nothing was recorded.

    Whole numbers throughout, so that what is not changed stays as it is.
    """
    return part * now // whole if whole else now
