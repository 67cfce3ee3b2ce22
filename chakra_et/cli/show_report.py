"""How the reports of conversions look: one screen for a run, what matters first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from chakra_et.cli.terminal import (
    WARNING,
    Plain,
    Row,
    plain_or_console,
    say,
    show_rows,
    show_table,
    size,
)
from chakra_et.conversion import Conversion
from chakra_et.conversions import Conversions
from chakra_et.linker.output.report import Report
from chakra_et.linker.tallies import Tally
from chakra_et.patterns import lazy_pattern
from chakra_et.search import told_passed_over
from chakra_et.shown import number_of
from chakra_et.urls import shown_path

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WARNINGS_SHOWN: Final = 5
_JOINED_SHOWN: Final = 3
_RANKS_SHOWN: Final = 10
_DIGITS: Final = lazy_pattern(r"\d+")


def show_conversions(
    console: Console | Plain, conversions: Conversions, verbose: bool = False
) -> None:
    """The report of a run: of one rank in lines, of several in a table."""
    last = _warnings(conversions, verbose)
    if len(conversions) == 1:
        _show_one(console, conversions[0], verbose, last)
    elif verbose:
        for conversion in conversions:
            _show_one(console, conversion, verbose, [])
        show_rows(console, last)
    else:
        _show_run(console, conversions, last)


def show_failures(conversions: Conversions) -> None:
    """The ranks that could not be converted, on standard error, each with its error."""
    failures = conversions.failures
    if not failures:
        return
    console = plain_or_console(stderr=True)
    count = len(failures) + len(conversions)
    text = f"{len(failures)} of {number_of(count, 'rank')} could not be converted:"
    say(console, f"error: {text}", "red")
    for failure in failures:
        beside = "" if len(failure.files) < 2 else f" (with {', '.join(failure.files[1:])})"
        say(console, f"  {failure.error}{beside}", "red")


def _show_one(
    console: Console | Plain, conversion: Conversion, verbose: bool, last: list[Row]
) -> None:
    report = conversion.report
    rank = "" if report.rank is None else f" (rank {report.rank})"
    name = shown_path(conversion.output) if conversion.output else " and ".join(_paths(report))
    say(console, f"{name}{rank}: {_written(report)}", "bold")
    rows = _in_full(report) if verbose else _in_short(report)
    show_rows(console, [row for row in rows if row[1]] + last)


def _paths(report: Report) -> list[str]:
    """The files that were read."""
    return [file["path"] for file in (report.host, report.device, report.trace) if file is not None]


def _written(report: Report) -> str:
    nodes, edges = _totals([report])
    text = f"{number_of(nodes, 'node')}, {number_of(edges, 'edge')}"
    file_bytes = None if report.output is None else report.output["bytes"]
    return text if file_bytes is None else f"{text}, {size(file_bytes)}"


def _totals(reports: Iterable[Report]) -> tuple[int, int]:
    """How many nodes and edges there are in all."""
    told = [
        (sum(report.nodes.values()), sum(count for count, _ in report.edges.values()))
        for report in reports
    ]
    return sum(nodes for nodes, _ in told), sum(edges for _, edges in told)


def _in_short(report: Report) -> list[tuple[str, str]]:
    """What a person wants to know, without what is nought."""
    lines = _inputs(report)
    lines += [("repaired", _repair(repair)) for repair in report.repairs]
    lines += [("joined", text) for text in _joined([report])]
    lines += [("nodes", _counts(report.nodes)), ("edges", _edges([report]))]
    lines.append(("communication", _communication([report])))
    return lines


def _inputs(report: Report) -> list[tuple[str, str]]:
    """What became of the records of each input."""
    lines = []
    if report.host is not None:
        text = _kept(report.host_nodes, report.host["path"]) + _reasons(report.host_nodes)
        lines.append(("host nodes", text))
    if report.device is not None:
        events = report.device_events
        if events.total:
            lines.append(("device events", _kept(events) + _reasons(events)))
        lines.append(("profile records", _kept(_all(report), report.device["path"])))
    if report.trace is not None:
        told = report.trace.get("written")
        text = _kept(_all(report), report.trace["path"]) + (f"; {told}" if told else "")
        lines.append(("ET nodes", text))
    return lines


def _kept(tally: Tally, file: str | None = None) -> str:
    """`38 in FILE, all kept` or `111 in FILE: 19 kept, 36 merged, 56 left out`."""
    total = str(tally.total) if file is None else f"{tally.total} in {file}"
    parts = {"kept": tally.kept, "merged": tally.merged, "left out": tally.left_out.total()}
    there = {name: count for name, count in parts.items() if count}
    if len(there) == 1:
        return f"{total}, all {next(iter(there))}"
    return f"{total}: " + ", ".join(f"{n} {name}" for name, n in there.items())


def _reasons(tally: Tally) -> str:
    if not tally.left_out:
        return ""
    return " (" + "; ".join(f"{n} {why}" for why, n in tally.left_out.most_common()) + ")"


def _all(report: Report) -> Tally:
    """What became of all records of the profile."""
    everything = Tally()
    for tally in report.records.values():
        everything += tally
    return everything


def _repair(repair: dict[str, Any]) -> str:
    where = "" if repair["offset"] is None else f", first at byte {repair['offset']}"
    return f"{repair['count']} x {repair['kind']}{where} ({Path(repair['file']).name})"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items() if n)


def _edges(reports: Iterable[Report]) -> str:
    """Edges by kind, and how many of each kind were inferred."""
    counts, inferred = Counter[str](), Counter[str]()
    for report in reports:
        for kind, (count, guessed) in report.edges.items():
            counts[kind] += count
            inferred[kind] += guessed
    return ", ".join(
        f"{count} {kind}" + (f" ({inferred[kind]} inferred)" if inferred[kind] else "")
        for kind, count in counts.items()
        if count
    )


def _communication(reports: Iterable[Report]) -> str:
    """Communication by operation."""
    found: dict[str, Counter[str]] = {}
    for report in reports:
        for item in report.communication:
            sums = found.setdefault(item["collective"] or item["type"], Counter())
            sums.update({key: item[key] for key in ("count", "bytes", "without_size")})
    return ", ".join(f"{sums['count']} {name} of {_size(sums)}" for name, sums in found.items())


def _in_full(report: Report) -> list[tuple[str, str]]:
    """Everything that fits a line."""
    lines = _inputs(report)
    for category, tally in report.records.items():
        lines.append((f"  {category}", _kept(tally) + _reasons(tally)))
    lines += [("repaired", _repair(repair)) for repair in report.repairs]
    for join in report.joins:
        lines.append(("joined", f"{join.matched} of {join.of} {join.what}, by {join.by}"))
    lines += [("nodes", _counts(report.nodes)), ("edges", _edges([report]))]
    for item in report.communication:
        name = "not known" if item["pg_name"] is None else item["pg_name"]
        what = f"{item['count']} {item['collective'] or item['type']}, {_size(item)}"
        lines.append(("communication", f"{what}, group {name} (facts from {item['facts_from']})"))
    return lines


def _size(item: Mapping[str, Any]) -> str:
    """The bytes of communications of one kind, and for how many of them no file tells."""
    unknown = int(item["without_size"])
    if unknown and unknown == item["count"]:
        return "unknown size"
    return size(item["bytes"]) + (f" and {unknown} of unknown size" if unknown else "")


def _show_run(console: Console | Plain, conversions: Conversions, last: list[Row]) -> None:
    """Several ranks: a row for each, and sums below."""
    reports = [conversion.report for conversion in conversions]
    outputs = [report.output for report in reports if report.output is not None]
    nodes, edges = _totals(reports)
    folder = conversions[0].output.parent if conversions[0].output else None
    place = f"{shown_path(folder)}: " if folder is not None else ""
    written = f", {size(sum(output['bytes'] for output in outputs))}" if outputs else ""
    say(console, f"{place}{len(reports)} ranks, {nodes} nodes, {edges} edges{written}", "bold")
    show_table(console, _ranks(conversions))
    if len(reports) > _RANKS_SHOWN:
        say(console, f"  and {len(reports) - _RANKS_SHOWN} more ranks (-v shows all)", "dim")
    rows = [("joined", text) for text in _joined(reports)[:_JOINED_SHOWN]]
    rows += [("edges", _edges(reports)), ("communication", _communication(reports))]
    show_rows(console, [row for row in rows if row[1]] + last)


def _ranks(conversions: Conversions) -> Table:
    """A row for each of the first ranks; columns of nothing but zeros are left out."""
    from rich.table import Table

    rows = [_row(conversion) for conversion in conversions]
    titles = [title for title in rows[0] if any(row[title] not in ("0", "") for row in rows)]
    table = Table(box=None, padding=(0, 1, 0, 1), header_style="dim")
    for title in titles:
        table.add_column(title, justify="left" if title in ("rank", "file") else "right")
    for row in rows[:_RANKS_SHOWN]:
        table.add_row(*(row[title] for title in titles))
    return table


def _row(conversion: Conversion) -> dict[str, str]:
    report = conversion.report
    events = report.device_events
    lost = report.host_nodes.left_out.total() + events.left_out.total()
    return {
        "rank": "-" if report.rank is None else str(report.rank),
        "host": str(report.host_nodes.total),
        "device": str(events.total),
        "left out": str(lost),
        "nodes": str(sum(report.nodes.values())),
        "edges": str(sum(count for count, _ in report.edges.values())),
        "file": conversion.output.name if conversion.output else "",
    }


def _joined(reports: list[Report]) -> list[str]:
    """How many records found each other: the first kind of them, and those with gaps."""
    of, by = Counter[str](), dict[str, Counter[str]]()
    for report in reports:
        of.update({join.what: join.of for join in report.joins})
        for join in report.joins:
            by.setdefault(join.what, Counter())[join.by] += join.matched
    lines = []
    for place, what in enumerate(of):
        matched = by[what].total()
        if of[what] and (place == 0 or matched < of[what]):
            means = [(how, n) for how, n in by[what].most_common() if n]
            told = ", ".join(f"{n} by {how}" if len(means) > 1 else f"by {how}" for how, n in means)
            lines.append(f"{matched} of {of[what]} {what}" + (f", {told}" if told else ""))
    return lines


def _warnings(conversions: Conversions, verbose: bool) -> list[Row]:
    """The warnings of all ranks; those that differ in numbers only count as one.

    Files that were passed over come last.
    """
    last = told_passed_over(conversions.passed_over)
    alike: dict[str, list[tuple[Conversion, str]]] = {}
    for conversion in conversions:
        for warning in conversion.report.warnings:
            if warning != last:
                alike.setdefault(_DIGITS.sub("#", warning), []).append((conversion, warning))
    most = len(alike) if verbose else _WARNINGS_SHOWN
    rows: list[Row] = []
    for told in list(alike.values())[:most]:
        more = len(told) - 1
        others = f" (and the like on {more} more rank{'s' * (more > 1)})" if more else ""
        rank = told[0][0].report.rank
        where = "" if rank is None or len(conversions) == 1 else f"rank {rank}: "
        rows.append((WARNING, f"{where}{told[0][1]}{others}"))
    if len(alike) > most:
        rows.append((WARNING, f"{len(alike) - most} more warnings (-v shows all)"))
    if last is not None:
        rows.append((WARNING, last))
    return rows
