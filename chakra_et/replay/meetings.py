"""What the ranks of a run recorded together: communications, clocks, how long transfers took."""

from __future__ import annotations

from dataclasses import dataclass

from chakra_et.model import TraceSet
from chakra_et.replay.columns import Columns, columns_of
from chakra_et.replay.matching import Match, Matching, match_communication
from chakra_et.replay.planning import clock_offsets
from chakra_et.replay.transfers import Transfers, transfer_times


@dataclass(frozen=True)
class Meetings:
    """The columns of all ranks, their matched communications, and their clocks.

    `matches` maps places in `ranks` to rows there. `offsets[i]` is what the clock of rank i is
    ahead of the first one's, in ns; `unaligned` are the places of ranks whose clock nothing tells.
    """

    ranks: list[Columns]
    matching: Matching
    matches: list[tuple[Match, dict[int, int]]]
    offsets: list[int]
    unaligned: list[int]

    @classmethod
    def of(cls, traces: TraceSet) -> Meetings:
        """Match the communications of a run, and align its clocks."""
        ranks = [columns_of(trace) for trace in traces.values()]
        place = {rank: i for i, rank in enumerate(traces)}
        matching = match_communication(traces) if len(traces) > 1 else Matching()
        matches = [
            (match, {place[rank]: row for rank, row in match.members.items()})
            for match in matching.matches
        ]
        offsets, unaligned = clock_offsets(ranks, [rows for _, rows in matches])
        return cls(ranks, matching, matches, offsets, unaligned)

    @property
    def members(self) -> list[dict[int, int]]:
        """The row of each member of each match, by its place in `ranks`."""
        return [rows for _, rows in self.matches]

    def recorded(self) -> Transfers:
        """How long transfers took in the recording."""
        durations = [columns.duration for columns in self.ranks]
        return transfer_times(self.ranks, durations, self.offsets, self.matches, None)
