"""The account of a conversion: what was read, kept and left out, as `docs/report.md` has it."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

import msgspec

from chakra_et.pages.grid import Cell, Column, Grid, Section, name, number, sentence


class LeftOut(msgspec.Struct):
    """Records that were left out for one reason."""

    reason: str
    count: int


class Tally(msgspec.Struct):
    """What became of the records of one kind."""

    total: int = 0
    kept: int = 0
    merged: int = 0
    left_out: list[LeftOut] = []


class Join(msgspec.Struct):
    """How records of one kind found their counterparts."""

    what: str
    by: str
    matched: int
    of: int


class Repair(msgspec.Struct):
    """Damage that was mended."""

    file: str
    kind: str
    count: int
    left_out: int


class Report(msgspec.Struct):
    """What a page shows of the report of one conversion."""

    host_nodes: Tally
    records: dict[str, Tally] = {}
    joins: list[Join] = []
    repairs: list[Repair] = []
    warnings: list[str] = []
    added: dict[str, int] | None = None

    @classmethod
    def of(cls, content: Any) -> Report:
        """A report from the data in it."""
        return msgspec.convert(content, cls)

    @property
    def tallies(self) -> dict[str, Tally]:
        """All tallies, by what they are of."""
        profile = {f"profile: {what}": tally for what, tally in self.records.items()}
        return {"nodes of the host trace": self.host_nodes, **profile}


class Steps(msgspec.Struct):
    """How many steps were to be recorded, and how many were."""

    recorded: int
    wanted: int | None = None


class Manifest(msgspec.Struct):
    """What a page shows of the manifest of a recording (`chakra collect`)."""

    rank: int
    steps: Steps
    backend: str | None = None
    devices: list[str] = []
    torch: str = ""
    written: str = ""


class _Reports(msgspec.Struct):
    conversions: list[Report]


def reports_in(content: bytes) -> list[Report]:
    """The reports in a file that `chakra convert --report` wrote; none if it is another file."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return msgspec.json.decode(content, type=_Reports).conversions
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return [msgspec.json.decode(content, type=Report)]
    return []


def manifest_in(content: bytes) -> list[Manifest]:
    """The manifest in a file that `chakra collect` wrote; none if it is another file."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        return [msgspec.json.decode(content, type=Manifest)]
    return []


def account(reports: list[Report], told_by: str, manifests: list[Manifest]) -> Section:
    """The section with the account of all conversions of a run, and of its recording."""
    section = Section("account", "Account")
    section.tables = [_recorded(manifests)]
    if not reports:
        section.empty = (
            "There is no report of a conversion beside these traces: chakra convert DIR -o OUT "
            "--report OUT/report.json writes one, and a page about recordings makes its own."
        )
        return section
    section.words = [
        f"From the report in {told_by}." if told_by.endswith(".json") else "From this conversion."
    ]
    section.tables += [_records(reports), _left_out(reports), _joins(reports), _said(reports)]
    return section


def _recorded(manifests: list[Manifest]) -> Grid:
    rows = [
        [number(m.rank), number(m.steps.recorded), _wanted(m.steps), sentence(m.torch),
         sentence(m.backend or ""), name(", ".join(m.devices)), sentence(m.written)]
        for m in sorted(manifests, key=lambda m: m.rank)
    ]  # fmt: skip
    columns = [
        Column("rank"), Column("steps"), Column("wanted"), Column("PyTorch", text=True),
        Column("backend", text=True), Column("devices", text=True), Column("written", text=True),
    ]  # fmt: skip
    return Grid("account-recorded", "How it was recorded.", columns, rows)


def _wanted(steps: Steps) -> Cell:
    return number(steps.recorded if steps.wanted is None else steps.wanted)


def _records(reports: list[Report]) -> Grid:
    sums: dict[str, list[int]] = {}
    for report in reports:
        for what, tally in report.tallies.items():
            left_out = sum(item.count for item in tally.left_out)
            entry = sums.setdefault(what, [0, 0, 0, 0])
            for place, count in enumerate((tally.total, tally.kept, tally.merged, left_out)):
                entry[place] += count
    rows = [[name(what), *map(number, entry)] for what, entry in sums.items() if entry[0]]
    heads = ("total", "kept", "merged", "left out")
    columns = [Column("records", text=True), *(Column(head) for head in heads)]
    caption = "Every record that was read: kept as a node, merged into one, or left out."
    return Grid("account-records", caption, columns, rows)


def _left_out(reports: list[Report]) -> Grid:
    reasons: Counter[str] = Counter()
    for report in reports:
        for tally in report.tallies.values():
            for item in tally.left_out:
                reasons[item.reason] += item.count
    rows = [[sentence(why), number(count)] for why, count in reasons.most_common()]
    columns = [Column("reason", text=True), Column("records")]
    return Grid("account-reasons", "Why records were left out.", columns, rows)


def _joins(reports: list[Report]) -> Grid:
    sums: dict[tuple[str, str], list[int]] = {}
    for report in reports:
        for join in report.joins:
            entry = sums.setdefault((join.what, join.by), [0, 0])
            entry[0] += join.matched
            entry[1] += join.of
    rows = [
        [sentence(what), sentence(by), number(matched), number(of)]
        for (what, by), (matched, of) in sums.items()
    ]
    columns = [Column("what", text=True), Column("by", text=True), Column("matched"), Column("of")]
    return Grid("account-joins", "How records found each other.", columns, rows)


def _said(reports: list[Report]) -> Grid:
    said: Counter[tuple[str, str]] = Counter()
    for report in reports:
        said.update(("warning", words) for words in report.warnings)
        said.update(
            ("mended", f"{r.kind} in {r.file}: {r.count} times, {r.left_out} records lost")
            for r in report.repairs
        )
        said.update(("added", f"{count} {what}") for what, count in (report.added or {}).items())
    rows = [[name(kind), sentence(words), number(count)] for (kind, words), count in said.items()]
    columns = [Column("what", text=True), Column("in words", text=True), Column("ranks")]
    return Grid("account-said", "Warnings, and what was mended or added.", columns, rows)
