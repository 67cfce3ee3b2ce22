"""Rules about groups of ranks as ASTRA-sim knows them: by number, from a file of their own."""

from __future__ import annotations

import numpy as np

from chakra_et.model import number_in_name
from chakra_et.validators.finding import NOTHING, Finding, Hits
from chakra_et.validators.rule import run_rule, trace_rule
from chakra_et.validators.sequences import WORLD
from chakra_et.validators.view import RunView, TraceView


@trace_rule(
    "ET714",
    "The name of a group is not a number.",
    why="ASTRA-sim turns it into one: '3a' becomes 3, 'tp' an exception, swallowed or not.",
    cure="`chakra fix --for astra-sim` numbers the groups and writes comm_groups.json.",
)
def group_name(view: TraceView) -> Hits:
    """Names on communication nodes that are not plain decimal numbers."""
    rows = view.communication
    names = view.texts("pg_name")[rows]
    wrong = np.array([bool(n) and number_in_name(n) is None for n in names.tolist()], np.bool_)
    return view.hits(rows[wrong], lambda i: f"group {names[wrong][i]!r}")


@run_rule(
    "ET715",
    "Collectives of all ranks and of some are mixed.",
    why="With the world as '0' or without a name, ranks count collectives apart, and deadlock.",
    cure="Give the world a number and an entry of its own in comm_groups.json: `chakra fix` does.",
)
def implicit_world(run: RunView) -> Hits:
    """A rank with collectives both of the unnamed world and of another group."""
    found = []
    mixed = any(
        name not in WORLD
        for view in run.views.values()
        for name in np.unique(view.texts("pg_name")[view.collectives].astype(str)).tolist()
    )
    for view in run.views.values() if mixed else ():
        names = view.texts("pg_name")[view.collectives].astype(str)
        world = view.collectives[np.isin(names, WORLD)]
        if len(world):
            found.append(
                view.at(int(world[0]), f"{len(world)} of {len(names)} are of the unnamed world")
            )
    return Hits.of(found)


@run_rule(
    "ET716",
    "A collective belongs to a group of one rank.",
    why="ASTRA-sim makes nothing of it, and it never finishes.",
    cure="Drop it: `chakra fix --for astra-sim` does.",
)
def group_of_one(run: RunView) -> Hits:
    """Collectives of groups that are known to have one member."""
    found = []
    for view in run.views.values():
        names = view.texts("pg_name")[view.collectives].astype(str)
        ones = [n for n in np.unique(names).tolist() if n not in WORLD and run.is_lone(view, n)]
        rows = view.collectives[np.isin(names, ones)]
        found += [view.at(row, "its group has one rank") for row in rows.tolist()]
    return Hits.of(found)


@run_rule(
    "ET721",
    "The file of groups does not fit the traces.",
    why="ASTRA-sim stops on an assertion, an exception, or with 'unknown group'.",
    cure="`chakra fix --for astra-sim` writes comm_groups.json together with the traces.",
    kin="ET714",
)
def group_file(run: RunView) -> Hits:
    """comm_groups.json beside the files: its keys, its ranks, and the names that nodes use."""
    if run.group_file is None:
        return NOTHING
    path, groups = run.group_file
    # Ranks of the run that are missing are another matter.
    world = max([run.world_size or 0, *(rank + 1 for rank in run.views)])
    found = []
    if not isinstance(groups, dict):
        return Hits.of([Finding("not a JSON object of lists of ranks", path=path)])
    if "empty" in path:
        text = "the path holds 'empty': ASTRA-sim takes that for no file"
        found.append(Finding(text, path=path))
    for key, ranks in groups.items():
        if not number_in_name(key):
            found.append(Finding(f"key {key!r} is not a number above 0", path=path))
        if not isinstance(ranks, list) or not ranks:
            found.append(Finding(f"group {key!r} is not a list of ranks", path=path))
        elif strange := [r for r in ranks if type(r) is not int or not 0 <= r < world]:
            found.append(Finding(f"group {key!r} has ranks without a trace: {strange}", path=path))
    for view in run.views.values():
        names = np.unique(view.texts("pg_name")[view.collectives].astype(str)).tolist()
        for name in names:
            if name not in WORLD and name not in groups:
                found.append(Finding(f"no group {name!r}", view.rank, path=path))
            elif isinstance(members := groups.get(name), list) and view.rank not in members:
                found.append(
                    Finding(f"group {name!r} has no rank {view.rank}", view.rank, path=path)
                )
    return Hits.of(found)


@run_rule(
    "ET722",
    "Groups are used, but there is no file of groups beside the traces.",
    why="ASTRA-sim knows only the group of all ranks by itself.",
    cure="`chakra fix --for astra-sim` writes comm_groups.json; or write one yourself.",
)
def no_group_file(run: RunView) -> Hits:
    """Names of groups on nodes, and traces from files without comm_groups.json beside them."""
    if run.group_file is not None or not run.from_files:
        return NOTHING
    names = {
        name
        for view in run.views.values()
        for name in np.unique(view.texts("pg_name")[view.collectives].astype(str)).tolist()
        if name not in WORLD
    }
    return Hits.of([Finding(f"groups in use: {', '.join(sorted(names))}")]) if names else NOTHING
