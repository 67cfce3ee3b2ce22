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
from page_parts import keep
from predict import MEASURES, NOTICED, TABLE, Recorded, measured

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from mutation_cases import CASES

from chakra_et.model import EdgeKind, Trace

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
    recorded = Recorded.of(traces, [(FASTER, SLOWER)])
    if how is None:
        return measured(recorded, lambda trace: trace)
    return measured(recorded, lambda trace: CHANGES[how](trace, kind))


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


def keep_table(*, check: bool) -> int:
    """Write the table, or compare: an exit code."""
    return keep(TABLE, BEGIN, END, "\n".join(table()), check=check)


def main() -> int:
    """Write or check the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    return keep_table(check=parser.parse_args().check)


if __name__ == "__main__":
    sys.exit(main())
