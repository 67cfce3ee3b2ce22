"""Rules about process groups."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from chakra_et.columns import Rows
from chakra_et.validators.finding import NOTHING, Finding, Hits
from chakra_et.validators.rule import run_rule, trace_rule
from chakra_et.validators.view import RunView, TraceView


@trace_rule(
    "ET401",
    "The table of process groups cannot be read.",
    why="The ranks of its collectives are unknown.",
    cure="Write process_groups as the schema says: a JSON list of objects with pg_name and ranks.",
)
def unreadable_groups(view: TraceView) -> Hits:
    """Text in `process_groups` that is no such list."""
    try:
        said = view.trace.metadata.get("process_groups")
        if said is not None and not isinstance(said, str):
            return view.whole("process_groups is not a string")
        _ = view.trace.groups
    except ValueError as error:
        return view.whole(str(error))
    return NOTHING


@trace_rule(
    "ET402",
    "A collective is of a group that the table does not have.",
    why="A simulator that needs its members stops.",
    cure="Add the group to process_groups.",
    kin="ET502",
)
def unknown_group(view: TraceView) -> Hits:
    """Names that the trace's table lacks, where it has one."""
    if not view.groups:
        return NOTHING
    rows, names = _named(view)
    unknown = ~np.isin(names.astype(str), list(view.group_of))
    return view.hits(rows[unknown], lambda i: f"group {names[unknown][i]!r}")


@trace_rule(
    "ET403",
    "A rank communicates in a group that it is not a member of.",
    why="ASTRA-sim stops on an assertion.",
    cure="Ranks of a group are global ones: those within another group are often taken for them.",
    kin="ET502",
)
def not_a_member(view: TraceView) -> Hits:
    """Collectives of groups whose known members do not include this rank."""
    if view.rank is None:
        return NOTHING
    strange = [g.name for g in view.groups if g.ranks and view.rank not in g.ranks]
    if not strange:
        return NOTHING
    rows, names = _named(view)
    wrong = np.isin(names.astype(str), strange)
    return view.hits(
        rows[wrong],
        lambda i: (
            f"group {names[wrong][i]!r} has the ranks {list(view.group_of[names[wrong][i]].ranks)}"
        ),
    )


@trace_rule(
    "ET404",
    "Not all members of a group are known.",
    why="A simulator cannot tell who takes part.",
    cure="Record with a newer profiler (old ones cut long lists), or write process_groups.",
    kin="ET403 ET406 ET407",
)
def cut_members(view: TraceView) -> Hits:
    """Groups in use with fewer ranks than their size, or with none."""
    used = set(_named(view)[1].tolist())
    found = [
        _of_group(view, g.name, f"{len(g.ranks)} of {g.size or '?'} ranks are known")
        for g in view.groups
        if g.name in used and (len(g.ranks) < g.size or not g.ranks)
    ]
    return Hits.of(found)


@trace_rule(
    "ET405",
    "Two groups of a rank have the same name.",
    why="A reader keeps the first or the last of them.",
    cure="Give them different names.",
    kin="ET403 ET407",
)
def doubled_group(view: TraceView) -> Hits:
    """Names that stand more than once in the table."""
    counted = Counter(group.name for group in view.groups)
    return Hits.of(
        [
            _of_group(view, name, f"{count} groups of this name")
            for name, count in counted.items()
            if count > 1
        ]
    )


@trace_rule(
    "ET406",
    "A group has members that cannot exist.",
    why="A simulator waits for them, or stops on an assertion.",
    cure="Correct the table: each rank once, from 0 to the world size minus one.",
    kin="ET403 ET407",
)
def odd_members(view: TraceView) -> Hits:
    """Members that are doubled, negative, or beyond the world."""
    world = view.trace.world_size
    found = []
    for group in view.groups:
        doubled = [rank for rank, count in Counter(group.ranks).items() if count > 1]
        beyond = [r for r in group.ranks if r < 0 or (world is not None and r >= world)]
        parts = [f"twice: {doubled}"] * bool(doubled) + [f"not in the world: {beyond}"] * bool(
            beyond
        )
        if parts:
            found.append(_of_group(view, group.name, "; ".join(parts)))
    return Hits.of(found)


@trace_rule(
    "ET409",
    "The group of a collective is ambiguous.",
    why="A simulator would take it for one of all ranks, and wait for some that never come.",
    cure="Convert the recordings of all ranks together; record with one group, or with NCCL.",
    kin="ET402 ET502 ET504",
)
def open_group(view: TraceView) -> Hits:
    """Collectives with `pg_candidates`, as a backend without names for groups leaves them."""
    rows = view.collectives[view.present("pg_candidates")[view.collectives]]
    candidates = view.texts("pg_candidates")[rows]
    return view.hits(rows, lambda i: f"one of {candidates[i]}")


@run_rule(
    "ET407",
    "Ranks disagree about the members of a group.",
    why="Read together, one of them is in the wrong group.",
    cure="PyTorch counts groups per process; `chakra fix` gives each set of ranks its own number.",
    kin="ET403 ET502 ET503 ET504 ET718",
)
def disagreeing_members(run: RunView) -> Hits:
    """Names with more than one set of members, over all ranks."""
    said: dict[str, dict[frozenset[int], int]] = {}
    for rank, view in run.views.items():
        for group in view.groups:
            if group.ranks:
                said.setdefault(group.name, {}).setdefault(frozenset(group.ranks), rank)
    found = []
    for name, accounts in said.items():
        if len(accounts) > 1:
            texts = [f"rank {rank} says {sorted(ranks)}" for ranks, rank in accounts.items()]
            found.append(Finding("; ".join(texts), next(iter(accounts.values())), None, name))
    return Hits.of(found)


@run_rule(
    "ET408",
    "Ranks disagree about the world size.",
    why="They are not of one run, or files are missing.",
    cure="Put the files of each run into a directory of their own.",
    kin="ET501",
)
def disagreeing_world(run: RunView) -> Hits:
    """World sizes that differ from rank to rank."""
    said = {r: v.trace.world_size for r, v in run.views.items() if v.trace.world_size is not None}
    if len(set(said.values())) < 2:
        return NOTHING
    usual, _ = Counter(said.values()).most_common(1)[0]
    return Hits.of(
        [
            Finding(f"{size} ranks, where others say {usual}", rank, path=run.views[rank].path)
            for rank, size in said.items()
            if size != usual
        ]
    )


def _of_group(view: TraceView, name: str, evidence: str) -> Finding:
    """A finding about a group, by its name."""
    return Finding(evidence, view.rank, None, f"group {name}", view.path)


def _named(view: TraceView) -> tuple[Rows, npt.NDArray[np.object_]]:
    """Collectives that name a group, and the names."""
    names = view.texts("pg_name")[view.collectives]
    named = names != ""
    return view.collectives[named], names[named]
