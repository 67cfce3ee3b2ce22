"""A row of the table in docs/recording.md: recordings of one release of PyTorch, and what came out.

python tools/record_pairs.py all --truth -o DIR
python tools/recordings_table.py RELEASE DIR
"""

from __future__ import annotations

import sys
from pathlib import Path

from recording.truth import read_truth, right, told

from chakra_et import validate
from chakra_et.conversion import Conversion, trace_set
from chakra_et.directory import convert_directory
from chakra_et.replay import replay
from chakra_et.validators import Severity

HEAD = (
    "| PyTorch | programs, ranks | operators joined | communications as said | edges left out "
    "| errors found | span, worst |\n|---|---|---|---|---|---|---|"
)


def row(release: str, directory: Path) -> str:
    """The row of one release."""
    joined = of = as_said = said = left_out = errors = ranks = 0
    worst = 0.0
    folders = sorted(path for path in directory.iterdir() if path.is_dir())
    for folder in folders:
        conversions = convert_directory(folder, None)
        ranks += len(conversions)
        for rank, conversion in enumerate(conversions):
            truth = read_truth(folder, rank)
            said += len(truth)
            as_said += right(truth, told(conversion.trace))
            for join in conversion.report.joins:
                if join.by == "record-function id":
                    joined, of = joined + join.matched, of + join.of
            left_out += _edges_left_out(conversion)
        traces = trace_set(conversions)
        errors += validate(traces).count(Severity.ERROR)
        worst = max([worst, *(abs(f.span_error or 0) for f in replay(traces).figures.values())])
    return (
        f"| {release} | {len(folders)}, {ranks} | {joined:,} of {of:,} | {as_said} of {said} "
        f"| {left_out} | {errors} | {worst:.2%} |"
    )


def _edges_left_out(conversion: Conversion) -> int:
    """How many edges contradict the recorded times, by the warnings that count them."""
    found = [w for w in conversion.report.warnings if "edges contradict" in w]
    return sum(int(warning.split()[0]) for warning in found)


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    release, directory = sys.argv[1:]
    print(HEAD)
    print(row(release, Path(directory)))


if __name__ == "__main__":
    main()
