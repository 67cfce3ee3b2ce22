"""All ranks of a job, with what they did together and their clocks: what every analysis needs."""

from __future__ import annotations

from dataclasses import dataclass

from chakra_et.analyze.clocks import Clock, clocks
from chakra_et.errors import ChakraError
from chakra_et.model import TraceSet
from chakra_et.replay.columns import Columns, columns_of
from chakra_et.replay.matching import Matching, match_communication


@dataclass(frozen=True)
class Job:
    """The traces of a job by rank, and which of their communications belong together."""

    traces: TraceSet
    columns: dict[int, Columns]
    matching: Matching

    @classmethod
    def of(cls, traces: TraceSet) -> Job:
        """Match the communications of all ranks."""
        columns = {rank: columns_of(trace) for rank, trace in traces.items()}
        return cls(traces, columns, match_communication(traces))

    def clocks(self) -> dict[int, Clock]:
        """The clock of every rank; raises ChakraError where they cannot be told."""
        if len(self.traces) < 2:
            raise ChakraError(
                "one rank has nobody to compare its clock with", remedy="Give all ranks of a run."
            )
        return clocks(self.columns, self.matching.matches)
