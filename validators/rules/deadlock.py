"""Rules about ranks that hold each other up."""

from __future__ import annotations

from typing import Final

from chakra_et.definitions import NodeType
from chakra_et.shown import shortened
from chakra_et.validators.finding import NOTHING, Finding, Hits
from chakra_et.validators.joined import Joined, complete_groups
from chakra_et.validators.rule import run_rule
from chakra_et.validators.view import RunView

_SHOWN: Final = 6


@run_rule(
    "ET510",
    "Ranks wait for each other in a cycle.",
    why="A receive before the send that the other rank waits for: nobody goes on, and ASTRA-sim "
    "ends with exit code 0 and says nothing.",
    cure="Let one of the ranks send first, or drop the edge that orders what was not in order.",
    kin="ET105 ET106 ET502 ET503 ET505",
)
def deadlock(run: RunView) -> Hits:
    """Cycles over several ranks: by edges, by messages, and by collectives of several groups."""
    groups = complete_groups(run)
    sides = (NodeType.COMM_SEND, NodeType.COMM_RECV)
    if len(groups) < 2 and not any(len(v.of_type(*sides)) for v in run.views.values()):
        return NOTHING
    joined = Joined(run, groups)
    return Hits.of([_finding(run, joined, rows) for rows in joined.circles()])


@run_rule(
    "ET719",
    "Ranks may issue collectives of two groups in different orders.",
    why="ASTRA-sim runs one collective of a rank at a time, of those that are ready the one of "
    "least id: one rank holds its place for a group, another for the other group.",
    cure="Let all ranks run them in one order: `chakra fix --for astra-sim` adds the edges.",
    kin="ET510 ET503",
)
def orders_of_groups(run: RunView) -> Hits:
    """Circles that arise if each rank runs its collectives one by one, by their ids."""
    groups = complete_groups(run)
    if len(groups) < 2:
        return NOTHING
    joined = Joined(run, groups)
    if joined.circles():
        return NOTHING  # ET510 speaks of those.
    joined.run_one_by_one(run)
    return Hits.of([_finding(run, joined, rows) for rows in joined.circles()])


def _finding(run: RunView, joined: Joined, rows: list[int]) -> Finding:
    places = [joined.place(row) for row in rows if row < joined.nodes]
    steps = [
        f"rank {rank} node {run.views[rank].nodes.id[row]} "
        f"{shortened(run.views[rank].name(row), 40)!r}"
        for rank, row in places
    ]
    if len(steps) > _SHOWN:
        steps[_SHOWN - 1 :] = [f"… {len(steps) - _SHOWN + 1} more …"]
    rank, row = places[0]
    return run.views[rank].at(row, " waits for ".join([*steps, steps[0]]))
