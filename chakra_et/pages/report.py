"""The page about a run: what limits it, and everything that shows why."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from chakra_et.errors import ChakraError
from chakra_et.io.output import atomic_output
from chakra_et.pages import sections, tables, text
from chakra_et.pages.account import account
from chakra_et.pages.arrivals import Arrivals, arrivals
from chakra_et.pages.grid import name
from chakra_et.pages.limits import Verdict, verdict
from chakra_et.pages.page import Page, Tile, render
from chakra_et.pages.path import RunPath, run_path
from chakra_et.pages.ranks import Run, make_run
from chakra_et.pages.source import Opened, open_run
from chakra_et.pages.steps import PARTS, Step, steps_of
from chakra_et.pages.timeline import make_timeline
from chakra_et.replay import TransferModel
from chakra_et.shown import number_of, shown
from chakra_et.validators import validate

_RANKS_IN_OVERVIEW: Final = 12
_NAMES_IN_OVERVIEW: Final = 5


def write_report(
    source: str | Path,
    output: str | Path,
    *,
    window_ns: tuple[int, int] | None = None,
    network: TransferModel | None = None,
) -> Verdict:
    """Write a page about the traces in a file or directory; recordings are converted first.

    `window_ns` is the time that the timeline draws, from the begin of the run; the whole run by
    default. `network` gives transfers a time where the traces have none. Returns what limits the
    run. Raises ChakraError where nothing can be read, where
    bokeh is missing (extra `report`), and OutputError where the page cannot be written.
    """
    opened = open_run(Path(source))
    page, limit = make_page(opened, str(source), window_ns, network)
    html = render(page)
    with atomic_output(output) as stream:
        stream.write(html.encode("utf-8", "backslashreplace"))
    return limit


def make_page(
    opened: Opened,
    source: str,
    window_ns: tuple[int, int] | None = None,
    network: TransferModel | None = None,
) -> tuple[Page, Verdict]:
    """The content of the page about traces, and what limits them."""
    run = make_run(opened.traces, network)
    if network is not None and run.recorded:
        raise ChakraError(
            "these traces have recorded times, and a model of the network would not change them",
            remedy="chakra replay DIR --network says what it would.",
        )
    path, found = run_path(run), arrivals(run)
    steps = [
        step for rank, times in run.ranks.items() for step in steps_of(times, found.waits[rank])
    ]
    limit = verdict(run, path, found)
    begin, end = run.span
    if window_ns is not None and not 0 <= window_ns[0] < min(window_ns[1], end - begin):
        raise ChakraError(
            f"no time of this run, which lasts {text.time(end - begin)}, is in the window",
            remedy="Name a window in ms from the begin of the run, as in --window 2,5.",
        )
    ranks = {str(rank): times for rank, times in run.ranks.items()}
    drawn = make_timeline(ranks, run.span, path, window_ns)
    parts = [
        sections.timeline(drawn),
        sections.critical_path(run, path),
        sections.steps(run, steps),
        tables.operators(run.traces),
        tables.collectives(run.traces),
        tables.groups(run.traces),
        sections.skew(run, found, end - begin),
        tables.memory(run.traces),
        account(opened.reports, opened.told_by, opened.manifests),
        sections.findings(validate(run.traces)),
    ]
    page = Page(
        title=shown(Path(source).name or source),
        subtitle=_subtitle(run),
        source=shown(source),
        verdict=limit.sentence,
        sections=parts,
        ranks=list(ranks),
        notes=_notes(run),
        steps=_choices(steps, drawn.begin_ns, drawn.end_ns),
        timeline=drawn,
        has_path=bool(len(drawn.path.get("lane", ()))),
    )
    _overview(page, run, path, steps, limit, found)
    return page, limit


def _subtitle(run: Run) -> str:
    nodes = number_of(run.nodes, "node")
    return f"{number_of(len(run.ranks), 'rank')}, {nodes.replace(str(run.nodes), f'{run.nodes:,}')}"


def _notes(run: Run) -> list[str]:
    """What a reader must know before the first figure."""
    notes = []
    missing = run.traces.world_size - len(run.ranks)
    if missing > 0:
        there = [rank for rank in range(run.traces.world_size) if rank not in run.ranks]
        shown_ranks = ", ".join(map(str, there[:8])) + ", …" * (missing > 8)
        notes.append(
            f"{number_of(missing, 'rank')} of {run.traces.world_size} "
            f"{'has' if missing == 1 else 'have'} no trace here: {shown_ranks}. What these did is "
            "not in any figure."
        )
    if run.problem is not None:
        notes.append(f"The traces cannot be replayed, so there is no critical path: {run.problem}")
    if not run.recorded and run.done is not None and run.nodes:
        notes.append("No node has a recorded start. All times are those of a replay by the edges.")
        untimed = sum(
            int((t.columns.communication & (t.columns.duration == 0)).sum())
            for t in run.ranks.values()
        )
        if untimed:
            notes.append(
                f"{untimed:,} communications have no duration and take no time here; --network "
                "LATENCY_US,GB_PER_S gives them one."
            )
    return notes


def _choices(steps: list[Step], begin: int, end: int) -> list[tuple[str, int, int]]:
    """The steps that the timeline can show: of all ranks, from the first begin to the last end."""
    found: dict[str, tuple[int, int]] = {}
    for step in steps:
        a, b = found.get(step.name, (step.start_ns, step.end_ns))
        found[step.name] = min(a, step.start_ns), max(b, step.end_ns)
    return [
        (shown(name), max(a, begin) - begin, min(b, end) - begin)
        for name, (a, b) in found.items()
        if a < end and b > begin and len(found) > 1
    ]


def _overview(
    page: Page,
    run: Run,
    path: RunPath | None,
    steps: list[Step],
    limit: Verdict,
    found: Arrivals,
) -> None:
    begin, end = run.span
    whole = {
        rank: {part: sum(s.ns[part] for s in steps if s.rank == rank) for part in PARTS}
        for rank in run.ranks
    }
    page.tiles = [Tile("Run", text.time(end - begin), _steps_told(steps)), *_shares(run, whole)]
    if path is not None:
        page.tiles.append(
            Tile(
                "Host on the path",
                text.share(limit.shares.get("host", 0)),
                "of the critical path is host work and Python",
            )
        )
        page.path_bar = sections.path_bar(path)
        page.path_legend = [
            (bound, label) for bound, label in sections.BOUNDS.items() if path.bound_ns[bound]
        ]
        page.path_words = _path_words(path)
        page.path_top = [
            (name(what).text, text.time(ns), text.share(ns / path.length_ns))
            for what, ns in path.whole.by_name_ns[:_NAMES_IN_OVERVIEW]
        ]
    if any(found.waited_ns.values()):
        worst = max(found.awaited_ns, key=lambda rank: found.awaited_ns[rank])
        awaited = found.awaited_ns[worst] / max(end - begin, 1)
        page.tiles.append(
            Tile(
                "Latest rank",
                str(worst),
                f"the others wait for it {text.share(awaited)} of the run",
            )
        )
    chosen = list(run.ranks)[:_RANKS_IN_OVERVIEW]
    totals = {rank: sum(whole[rank].values()) for rank in chosen}
    page.rank_bars = [
        (rank, sections.part_bar(whole[rank]), 100 * ns / max(totals.values()), text.time(ns))
        for rank, ns in totals.items()
        if ns
    ]
    page.ranks_left_out = len(run.ranks) - len(chosen)


def _steps_told(steps: list[Step]) -> str:
    named = [step for step in steps if step.name not in ("all", "before")]
    if not named:
        return "from first start to last end"
    lengths = sorted(step.length_ns for step in named)
    count = len({step.name for step in named})
    return f"{number_of(count, 'step')}, {text.time(lengths[len(lengths) // 2])} in the median"


def _shares(run: Run, whole: dict[int, dict[str, int]]) -> list[Tile]:
    """Means over all ranks, of the time of each."""
    sums = {part: sum(ns[part] for ns in whole.values()) for part in PARTS}
    total = sum(sums.values())
    if not total:
        return []
    device = any(times.has_device for times in run.ranks.values())
    where = "device computes" if device else "operators compute"
    busy = (sums["compute"] + sums["overlap"]) / total
    tiles = [Tile("Computing", text.share(busy), f"of the time, {where}")]
    if any(times.columns.communication.any() for times in run.ranks.values()):
        exposed = (sums["transfer"] + sums["waiting"]) / total
        waiting = text.share(sums["waiting"] / total)
        meaning = f"of the time; {waiting} is waiting for other ranks"
        tiles.append(Tile("Exposed communication", text.share(exposed), meaning))
    return tiles


def _path_words(path: RunPath) -> str:
    ranks = path.by_rank_ns()
    told = f"It ends on rank {path.of_rank}"
    if len(ranks) > 1:
        most = max(ranks, key=lambda rank: ranks[rank])
        part = text.share(ranks[most] / path.length_ns)
        told += f" and runs through {len(ranks)} ranks, most of it ({part}) on rank {most}"
    return f"{told}. It lasts {text.time(path.length_ns)}."
