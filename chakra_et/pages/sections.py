"""The sections of a page, each made of what was found."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from chakra_et.analyze.job import Job
from chakra_et.analyze.tables import straggler_table
from chakra_et.model.time_parts import time_parts
from chakra_et.pages import text
from chakra_et.pages.arrivals import Arrivals
from chakra_et.pages.grid import (
    Cell,
    Column,
    Grid,
    Section,
    bar,
    from_table,
    name,
    number,
    sentence,
    share,
    size,
    time,
)
from chakra_et.pages.path import RunPath
from chakra_et.pages.ranks import Run
from chakra_et.pages.steps import PARTS, Step
from chakra_et.pages.timeline import Timeline
from chakra_et.replay.pieces import pieces_of
from chakra_et.validators import Validation

LABELS: Final = {
    "compute": "computing",
    "overlap": "computing and communicating",
    "transfer": "exposed transfer",
    "waiting": "waiting for other ranks",
    "host": "host only",
    "gap": "Python only",
    "idle": "idle",
}
"""What each of `PARTS` is called."""
_HEADS: Final = {
    "compute": "computing",
    "overlap": "overlapped",
    "transfer": "transfer",
    "waiting": "waiting",
    "host": "host",
    "gap": "Python",
    "idle": "idle",
}
BOUNDS: Final = {
    "host": "host operators and calls",
    "gap": "Python between operations",
    "device": "device work",
    "communication": "communication",
    "late": "late starts that nothing explains",
    "contention": "starts beside other streams",
    "idle": "waits for what lies outside the trace",
}
"""What each part of a path's `bound_ns` is called."""
_LONGEST: Final = 20


def part_bar(ns: dict[str, int]) -> Any:
    """What a rank does, as a bar."""
    return bar((part, LABELS[part], ns.get(part, 0)) for part in PARTS)


def path_bar(path: RunPath) -> Any:
    """What a path consists of, as a bar."""
    return bar((bound, BOUNDS[bound], ns) for bound, ns in path.bound_ns.items())


def steps(run: Run, found: list[Step]) -> Section:
    """Each step of each rank, and what it went into."""
    columns = [
        Column("rank"), Column("step", text=True), Column("time"),
        Column("breakdown", text=True, bar=True),
        *(Column(_HEADS[part], meaning=LABELS[part]) for part in PARTS),
    ]  # fmt: skip
    rows = [
        [number(s.rank), name(s.name), time(s.length_ns), Cell("", bar=part_bar(s.ns)),
         *(time(s.ns[part]) for part in PARTS)]
        for s in found
    ]  # fmt: skip
    words = [
        "A step lasts from its begin to that of the next one. Of each moment the first of these "
        "counts that holds: device work, with or without communication beside it; communication "
        "alone; host operators; Python between them; nothing."
    ]
    on_host = [rank for rank, times in run.ranks.items() if not times.has_device]
    if on_host:
        told = "Where" if len(on_host) < len(run.ranks) else "As"
        words.append(f"{told} no device computes, operators of the host are what computes.")
    if not run.recorded and run.done is not None:
        words.append("The trace has no times: these are those of its replay.")
    grid = Grid("steps-table", "Steps by rank, and where their time goes.", columns, rows)
    return Section("steps", "Steps", words, [grid], "" if rows else "Nothing has a time.")


def timeline(found: Timeline) -> Section:
    """What the timeline shows, and what it does not."""
    words = [
        f"{found.operations:,} operations in {text.time(found.end_ns - found.begin_ns)}, on the "
        "clock that all ranks share."
    ]
    if found.joined:
        words.append(
            f"To keep the page small, {found.joined:,} operations shorter than "
            f"{text.time(found.joined_ns)} are drawn as blocks with their neighbours; each block "
            "says how many it stands for. --window draws a shorter time in full."
        )
    if found.path_step_ns:
        words.append(
            f"The critical path is drawn in stretches of {text.time(found.path_step_ns)}, each "
            "where the longest part of it is."
        )
    return Section("timeline", "Timeline", words)


def critical_path(run: Run, path: RunPath | None) -> Section:
    """What the critical path consists of, and its longest stretches."""
    section = Section("path", "Critical path")
    if path is None:
        section.empty = run.problem or "Nothing takes time."
        return section
    length = path.length_ns or 1
    section.words = [
        f"The chain of waits that ends with the last work of rank {path.of_rank}: "
        f"{text.time(path.length_ns)} through {len(path.row):,} nodes. To make the run shorter, "
        "something on it must become shorter."
    ]
    bounds = [(BOUNDS[bound], ns) for bound, ns in path.bound_ns.items() if ns]
    section.tables = [
        _shares("path-bounds", "What bounds the path.", "bound", bounds, length),
        _shares("path-names", "Names whose own time takes most of the path.", "name",
                path.whole.by_name_ns, length),
        _longest(run, path),
    ]  # fmt: skip
    if len(run.ranks) > 1:
        by_rank = [(f"rank {rank}", ns) for rank, ns in path.by_rank_ns().items()]
        section.tables.insert(1, _shares("path-ranks", "Ranks that the path runs through.", "rank",
                                         by_rank, length))  # fmt: skip
    return section


def _shares(id: str, caption: str, label: str, entries: list[tuple[str, int]], whole: int) -> Grid:
    rows = [
        [name(what), time(ns), share(ns / whole)]
        for what, ns in sorted(entries, key=lambda entry: -entry[1])
    ]
    return Grid(id, caption, [Column(label, text=True), Column("time"), Column("of path")], rows)


def _longest(run: Run, path: RunPath) -> Grid:
    begin = run.span[0]
    took = path.took_ns
    places = np.argsort(-took, kind="stable")[:_LONGEST].tolist()
    parts = {rank: time_parts(run.traces[rank].nodes) for rank in set(path.rank[places].tolist())}
    rows = []
    for place in places:
        rank, ns = int(path.rank[place]), int(took[place])
        nodes, row = run.traces[rank].nodes, int(path.row[place])
        node, pieces = nodes[row], pieces_of(nodes, parts[rank], row)
        since = int(path.since_ns[place]) - begin
        told = f"{name(node.name).text}: {text.time(ns)} on rank {rank}"
        rows.append(
            [name(node.name), name(max(pieces, key=pieces.__getitem__)), number(rank),
             Cell(str(node.id), node.id), time(since), time(ns),
             share(ns / (path.length_ns or 1)), Cell(told, jump=(max(since, 0), ns, rank))]
        )  # fmt: skip
    columns = [
        Column("node", text=True), Column("mostly time of", text=True), Column("rank"),
        Column("id"), Column("from"), Column("time"), Column("of path"),
        Column("in the timeline", bar=True),
    ]  # fmt: skip
    caption = (
        "The longest stretches of the path. A host node lasts until the next one on its thread "
        "starts, so that a stretch can be mostly time of its caller, or of Python."
    )
    return Grid("path-longest", caption, columns, rows)


def skew(run: Run, found: Arrivals, span_ns: int) -> Section:
    """Who waits for whom."""
    section = Section("skew", "Skew between ranks")
    if len(run.ranks) < 2:
        section.empty = "There is one rank."
        return section
    for reason, count in found.unmatched.items():
        section.words.append(f"{count} communications are left out: {reason}.")
    if not found.meetings:
        section.empty = "No communication of several ranks could be matched."
        return section
    section.words.insert(
        0,
        "A collective begins when the last member arrives. The others wait until then; here "
        "counts the time in which they do not compute meanwhile.",
    )
    whole = span_ns or 1
    columns = [
        Column("rank"), Column("arrives last"), Column("waits for others"), Column("of the run"),
        Column("others wait for it", meaning="the mean over the other members"),
        Column("of the run"),
    ]  # fmt: skip
    rows = [
        [number(rank), number(found.last[rank]), time(found.waited_ns[rank]),
         share(found.waited_ns[rank] / whole), time(found.awaited_ns[rank]),
         share(found.awaited_ns[rank] / whole)]
        for rank in run.ranks
    ]  # fmt: skip
    section.tables = [
        Grid("skew-ranks", "Waiting by rank.", columns, rows),
        _meetings(run, found),
    ]
    if run.recorded:
        slow = "Ranks whose own work takes longer than that of others."
        stragglers = straggler_table(Job.of(run.traces))
        section.tables.append(from_table(stragglers, "skew-stragglers", slow))
    return section


def _meetings(run: Run, found: Arrivals) -> Grid:
    worst = sorted(found.meetings, key=lambda meeting: -meeting.skew_ns)
    begin = run.span[0]
    rows = [
        [name(m.name), name(m.place), size(m.size_bytes), time(m.skew_ns), number(m.last),
         time(m.arrived_ns - begin), name(found.causes.get(m.place, "")),
         Cell(f"{name(m.name).text}: rank {m.last} arrives last",
              jump=(max(m.arrived_ns - begin - m.skew_ns, 0), max(m.skew_ns, 1), m.last))]
        for m in worst[:_LONGEST]
    ]  # fmt: skip
    columns = [
        Column("communication", text=True), Column("call", text=True), Column("size"),
        Column("first to last arrival"), Column("last rank"), Column("last arrival"),
        Column("fell behind", text=True), Column("in the timeline", bar=True),
    ]  # fmt: skip
    left = max(len(worst) - _LONGEST, 0)
    caption = "Communications for which ranks wait longest."
    note = (
        "In the operation that is named, the last rank fell behind the first one by half of the "
        "skew, for good; chakra analyze DIR skew says more."
    )
    told = note if found.causes else ""
    return Grid("skew-calls", caption, columns, rows, told, left)


def findings(found: Validation) -> Section:
    """What the validators say."""
    section = Section("findings", "Findings")
    if not found.outcomes:
        section.empty = (
            f"None: {found.traces} traces with {found.nodes:,} nodes keep the rules of the profile "
            f"{found.profile.name}."
        )
        return section
    rows = [
        [Cell(o.severity.label, badge=o.severity.label), name(o.rule.id), sentence(o.rule.title),
         number(o.count), sentence(_first(o.findings)), sentence(o.rule.cure)]
        for o in sorted(found.outcomes, key=lambda o: (-o.severity, o.rule.id))
    ]  # fmt: skip
    columns = [
        Column("severity", text=True), Column("rule", text=True), Column("what", text=True),
        Column("findings"), Column("first", text=True), Column("cure", text=True),
    ]  # fmt: skip
    words = [f"By the rules of the profile {found.profile.name}; chakra explain RULE tells more."]
    section.words = words
    section.tables = [Grid("findings-table", "Findings by rule.", columns, rows)]
    return section


def _first(found: list[Any]) -> str:
    if not found:
        return ""
    return f"{found[0].place}: {found[0].evidence}" if found[0].place else str(found[0].evidence)
