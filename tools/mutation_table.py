"""Write the table of docs/prediction.md of edges that programs by construction rest on.

    python tools/mutation_table.py            write it
    python tools/mutation_table.py --check    exit 1 where the page says something else

The programs are those of tests/support/mutation_cases.py; each is run with some durations and with
others, and its graph is asked to foretell both.
"""

# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
from mutations import misdirected, without
from predict import MEASURES, NOTICED, TABLE, measured
from predictors import span_ns

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from mutation_cases import CASES

from chakra_et.model import EdgeKind, Trace
from chakra_et.predict import times_of
from chakra_et.replay import replay

BEGIN, END = "<!-- made by tools/mutation_table.py -->", "<!-- end of construction -->"
FASTER, SLOWER = 1.0, 3.0
CHANGES: dict[str, Callable[[Trace, EdgeKind], Trace]] = {
    "dropped": without,
    "misdirected": misdirected,
}


@cache
def measures(kind: EdgeKind, how: str | None = None) -> tuple[float, ...] | None:
    """What `MEASURES` say of a kind's program as it is, or changed; None where it cannot run."""
    traces = {factor: CASES[kind](factor) for factor in (FASTER, SLOWER)}
    moved = {(FASTER, SLOWER): times_of(traces[FASTER], traces[SLOWER])}
    spans = {key: span_ns(replay(trace)) for key, trace in traces.items()}
    if how is None:
        return measured(traces, moved, spans, lambda trace: trace)
    return measured(traces, moved, spans, lambda trace: CHANGES[how](trace, kind))


def table() -> Iterator[str]:
    """A line for each kind and change."""
    yield "| edges | changed | " + " | ".join(MEASURES) + " | noticed by |"
    yield "|---" * (3 + len(MEASURES)) + "|"
    for kind in EdgeKind:
        base = measures(kind)
        assert base is not None
        for how in CHANGES:
            found = measures(kind, how)
            grown = np.subtract(found or base, base)
            noticed = [name for name, by in zip(MEASURES, grown, strict=True) if by > NOTICED]
            noticed += ["a circle"] if found is None else []
            cells = [kind.label, how, *(f"{by:+.2%}" for by in grown),
                     ", ".join(noticed) or "**nothing**"]  # fmt: skip
            yield "| " + " | ".join(cells) + " |"


def page() -> str:
    """The page with the table as it is now."""
    head, _, rest = TABLE.read_text().partition(BEGIN)
    return head + BEGIN + "\n" + "\n".join(table()) + "\n" + END + rest.partition(END)[2]


def main() -> int:
    """Write or check the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    new = page()
    if parser.parse_args().check:
        return int(new != TABLE.read_text())
    TABLE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
