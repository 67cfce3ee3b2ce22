"""The page about a simulated run: its times and its timeline beside the recorded ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from chakra_et.io.output import atomic_output
from chakra_et.model import TraceSet
from chakra_et.pages import sections, text
from chakra_et.pages.grid import Cell, Column, Grid, Section, name, number, size, time
from chakra_et.pages.page import Page, Tile, render
from chakra_et.pages.ranks import RankTimes, Run, make_run
from chakra_et.pages.timeline import make_timeline
from chakra_et.replay.columns import columns_of
from chakra_et.shown import number_of, shown
from chakra_et.simulation import Comparison


def write_comparison(traces: TraceSet, found: Comparison, source: str, output: str | Path) -> None:
    """Write a page about a comparison of traces with a simulator's log.

    Raises ChakraError where bokeh is missing (extra `report`), and OutputError where the page
    cannot be written.
    """
    html = render(comparison_page(traces, found, source))
    with atomic_output(output) as stream:
        stream.write(html.encode("utf-8", "backslashreplace"))


def comparison_page(traces: TraceSet, found: Comparison, source: str) -> Page:
    """The content of that page."""
    run = make_run(traces)
    groups = _groups(run, found)
    begin = run.span[0]
    end = max([run.span[1], begin + found.simulated_ns, *(t.span[1] for t in groups.values())])
    drawn = make_timeline(groups, (begin, end))
    timeline = sections.timeline(drawn)
    if len(found.simulated):
        timeline.words.append(
            "Lanes called sim are the simulator's, in which all ranks begin at once. The others "
            "are recorded."
            if run.recorded
            else "Lanes called sim are the simulator's."
        )
    else:
        timeline.words.append(
            'The log tells no times of nodes: "trace-enabled": 1 in the system configuration of '
            "ASTRA-sim makes it tell them in log/log.log."
        )
    return Page(
        title=shown(Path(source).name or source),
        subtitle=f"simulated, {number_of(len(traces), 'rank')}",
        source=shown(source),
        verdict=sentence(found),
        sections=[_ranks(found), timeline, _calls(found)],
        tiles=_tiles(found, run),
        notes=notes(found),
        ranks=list(groups),
        timeline=drawn,
    )


def sentence(found: Comparison) -> str:
    """What the simulator says, in one sentence."""
    if not found.simulated_ns:
        return "No rank finished in the simulator."
    told = f"The simulator needs {text.time(found.simulated_ns)}"
    if not found.recorded_ns:
        return f"{told}; the traces have no times to compare with."
    ratio = found.simulated_ns / found.recorded_ns
    return f"{told} for what took {text.time(found.recorded_ns)}: {ratio:.2f} times as long."


def notes(found: Comparison) -> list[str]:
    """What a reader must know: who never finished, what failed, what was not compared."""
    told = []
    if found.unfinished:
        ranks = ", ".join(map(str, found.unfinished[:8])) + ", …" * (len(found.unfinished) > 8)
        told.append(
            f"{number_of(len(found.unfinished), 'rank')} never finished in the simulator: {ranks}."
        )
    told += [f"The simulator says: {words}" for words in found.critical[:3]]
    return [*told, *(f"{note[:1].upper()}{note[1:]}." for note in found.notes[:8])]


def _groups(run: Run, found: Comparison) -> dict[str, RankTimes]:
    """Recorded and simulated ranks, each beside the other; simulated ones begin with the run."""
    groups: dict[str, RankTimes] = {}
    begin = run.span[0]
    for rank, times in run.ranks.items():
        groups[str(rank)] = times
        if rank in found.simulated:
            trace = found.simulated[rank]
            columns = columns_of(trace)
            groups[f"{rank} sim"] = replace(
                times,
                trace=trace,
                columns=columns,
                start=columns.start + begin,
                end=columns.start + trace.nodes.duration_ns + begin,
                shown=times.shown & columns.timed,
                offset_ns=-begin,
            )
    return groups


def _tiles(found: Comparison, run: Run) -> list[Tile]:
    tiles = [Tile("Simulated", _time(found.simulated_ns), "until the last rank finished")]
    if run.recorded:
        starts = [times.span[0] for times in run.ranks.values()]
        tiles += [
            Tile("Recorded", _time(found.recorded_ns), "the longest rank"),
            Tile(
                "Begin apart",
                text.time(max(starts) - min(starts)),
                "recorded ranks; the simulator begins all at once",
            ),
        ]
    return tiles


def _time(ns: int | None) -> str:
    return text.time(ns) if ns else "not told"


def _ranks(found: Comparison) -> Section:
    columns = [
        Column("rank"), Column("recorded"), Column("simulated"),
        Column("ratio", meaning="simulated over recorded"),
        Column("exposed, recorded"), Column("exposed, simulated"),
        Column("computing, simulated"), Column("communicating, simulated"),
    ]  # fmt: skip
    rows = [
        [number(rank), _maybe(r.recorded_ns), _maybe(r.simulated_ns),
         Cell("" if r.ratio is None else f"{r.ratio:.2f}", r.ratio or 0),
         _maybe(r.recorded_exposed_comm_ns), _maybe(r.simulated_exposed_comm_ns),
         _maybe(r.figures.get("compute_ns")), _maybe(r.figures.get("comm_ns"))]
        for rank, r in found.ranks.items()
    ]  # fmt: skip
    words = [
        "Exposed is what the simulator calls exposed communication: all time in which nothing "
        "computes."
    ]
    grid = Grid("sim-ranks", "Ranks, simulated beside recorded.", columns, rows)
    return Section("ranks", "Ranks", words, [grid])


def _maybe(ns: int | None) -> Cell:
    return Cell("", 0) if ns is None else time(ns)


def _calls(found: Comparison) -> Section:
    rows = [
        [name(c.type), size(c.size_bytes), number(c.count), _maybe(c.recorded_ns),
         time(c.simulated_ns),
         Cell(f"{c.simulated_ns / c.recorded_ns:.2f}", c.simulated_ns / c.recorded_ns)
         if c.recorded_ns else Cell("", 0)]
        for c in found.calls
    ]  # fmt: skip
    columns = [
        Column("type", text=True), Column("size"), Column("count"), Column("recorded"),
        Column("simulated"), Column("ratio", meaning="simulated over recorded"),
    ]  # fmt: skip
    words = ["A transfer takes what the member takes that waits least."]
    empty = "" if rows else "The log tells of no communication of several ranks."
    grid = Grid(
        "sim-calls", "Transfers by type and size, simulated beside recorded.", columns, rows
    )
    return Section("collectives", "Collectives", words, [grid], empty)
