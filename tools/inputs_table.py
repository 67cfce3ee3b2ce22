"""Write docs/inputs.md: what becomes of every file of a directory of real traces.

python tools/inputs_table.py DIRECTORY            write the table
python tools/inputs_table.py DIRECTORY --check    fail if the file is not up to date
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase

from page_parts import keep_all
from traces_index import trace_files

from chakra_et import ChakraError, convert, read
from chakra_et.converters.format import View
from chakra_et.inputs import open_input
from chakra_et.linker.output.report import Report
from chakra_et.linker.tallies import Tally

TARGET = Path(__file__).resolve().parents[1] / "docs" / "inputs.md"
HEAD = """\
# Real inputs, and what becomes of them

Made by `python tools/inputs_table.py DIRECTORY` from a directory of public traces (their licences
are those of the projects they come from; they are not part of this repository). A record is *kept*
if it is a node of the ET, *merged* if its facts went into another node, or left out for a reason;
the three add up to the records in the file, for each file.

| file | kind | records | kept | merged | left out | why | repairs |
|---|---|---:|---:|---:|---:|---|---:|
"""
REASONS = """
## Why records are left out

None of these is an operation, a call or work on a device. The letters stand in the table above.

| | reason | records |
|---|---|---:|
"""
PAIRS = """
## Pairs

| pair | joined | of | by, or why it is refused |
|---|---:|---:|---|
"""


@dataclass
class Row:
    """What became of one file."""

    name: str
    kind: str
    tally: Tally
    repairs: int = 0

    def line(self, letters: dict[str, str]) -> str:
        """The row of the table, with letters for reasons."""
        tally = self.tally
        left_out = tally.left_out.total()
        why = ", ".join(f"{n} {letters[reason]}" for reason, n in tally.left_out.most_common())
        return (
            f"| `{self.name}` | {self.kind} | {tally.total} | {tally.kept} | {tally.merged} "
            f"| {left_out} | {why} | {self.repairs} |"
        )


def all_records(report: Report) -> Tally:
    """What became of the records of all inputs of a conversion."""
    tally = Tally()
    for part in (report.host_nodes, *report.records.values()):
        tally += part
    return tally


def account(path: Path, name: str) -> Row:
    """Convert one file, or read it if it is an ET."""
    given = open_input(path)
    if given.view is View.TRACE:
        count = len(read(path).nodes)
        return Row(name, given.format.name, Tally(count, count))
    is_host = given.view is View.HOST
    report = convert(path if is_host else None, None if is_host else path).report
    repairs = sum(repair["count"] for repair in report.repairs)
    return Row(name, given.format.name, all_records(report), repairs)


def pair(host: Path, device: Path, name: str) -> str:
    """The row of a pair."""
    try:
        join = convert(host, device).report.joins[0]
    except ChakraError as error:
        return f"| `{name}` | 0 | | refused: {error.problem} |"
    return f"| `{name}` | {join.matched} | {join.of} | {join.by} |"


def document(data: Path) -> str:
    """The whole file."""
    reasons: Counter[str] = Counter()
    rows: list[Row | str] = []
    pairs = []
    for path in trace_files(data):
        name = path.relative_to(data).as_posix()
        try:
            row = account(path, name)
        except ChakraError as error:
            rows.append(f"| `{name}` | refused: {error.problem} | | | | | | |")
            continue
        rows.append(row)
        reasons += row.tally.left_out
        partner = path.with_name(path.name.replace("host", "device"))
        if path.name.startswith("host") and partner.is_file():
            pairs.append(pair(path, partner, name.replace("host", "{host,device}")))
    letters = {
        reason: letter
        for letter, (reason, _) in zip(ascii_lowercase, reasons.most_common(), strict=False)
    }
    lines = [row if isinstance(row, str) else row.line(letters) for row in rows]
    why = [f"| {letters[r]} | {r} | {count} |" for r, count in reasons.most_common()]
    return (
        HEAD + "\n".join(lines) + "\n" + REASONS + "\n".join(why) + "\n" + PAIRS
        + "\n".join(pairs) + "\n"
    )  # fmt: skip


def main() -> int:
    """Write the file, or check it."""
    parser = argparse.ArgumentParser(description="Write docs/inputs.md.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    return keep_all(TARGET, document(arguments.directory), check=arguments.check)


if __name__ == "__main__":
    sys.exit(main())
