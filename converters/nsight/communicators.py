"""NCCL's communicators, by the ranges of all processes: members, ranks, and what is sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from chakra_et.converters.nsight.payloads import Payload, communicator_of, facts_of, place_of
from chakra_et.recording import Facts, GroupEntry

_SOURCE: Final = "NCCL's ranges"


@dataclass
class Communicators:
    """The calls of NCCL, and for each communicator its size and the process at each place."""

    calls: list[tuple[int, str, Payload]] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)
    members: dict[str, dict[int, int]] = field(default_factory=dict)

    def see(self, row: int, pid: int, name: str, payload: Payload) -> None:
        """Take in a call: the record that it became, its process, and what it tells."""
        self.calls.append((row, name, payload))
        communicator, place = communicator_of(payload), place_of(payload)
        if communicator is not None and place is not None:
            self.sizes.setdefault(communicator, place[0])
            self.members.setdefault(communicator, {}).setdefault(place[1], pid)

    def facts(self) -> Iterable[tuple[int, Facts]]:
        """What the calls that communicate tell, by record."""
        for row, name, payload in self.calls:
            facts = facts_of(name, payload, self.sizes.get(communicator_of(payload) or ""))
            if facts is not None:
                yield row, facts

    def ranks(self, pids: list[int]) -> dict[int, int]:
        """The rank of each process: its place in the largest communicator that has all of them.

        Empty if there is none, or only one process: its communicators may be parts of a larger run.
        """
        whole = [
            (self.sizes[name], places)
            for name, places in self.members.items()
            if set(pids) <= set(places.values())
        ]
        if len(pids) < 2 or not whole:
            return {}
        _, places = max(whole, key=lambda found: found[0])
        return {pid: place for place, pid in places.items()}

    def groups(self, ranks: dict[int, int]) -> list[GroupEntry]:
        """The process groups, with their members where the rank of each is known."""
        found = []
        for name, count in self.sizes.items():
            told = [ranks.get(self.members[name].get(place, -1), -1) for place in range(count)]
            known = told if min(told) >= 0 else []
            found.append(GroupEntry(name, _SOURCE, size=count, ranks=known))
        return found
