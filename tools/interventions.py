"""Record programs before and after a known change, foretell one from the other, write the tables.

    make .venv-torch/stamp && .venv-torch/bin/python tools/interventions.py

Writes the part of docs/prediction.md about interventions; with --print, only shows it. Each side
is recorded several times, before and after in turn, so that a machine that slows down does so for
both. Needs PyTorch and Linux, and a machine on which nothing else runs. With --keep, recordings
stay, and those that are there are not made again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from foretelling import NAIVE, OTHERS, Foretold, foretell

from chakra_et.errors import ChakraError

if TYPE_CHECKING:
    from recording.interventions import Intervention, Program

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "prediction.md"
GOAL = 0.03
SHARED = "processors=2,known::wait"
"""Two ranks run on two processors, and the known operator sleeps."""


def record_all(folder: Path, kinds: Mapping[str, Intervention], times: int, steps: int) -> None:
    """Record all programs, each side `times` times, in turn; but for kinds that are there."""
    from recording.ranks import run_ranks

    for name, kind in kinds.items():
        if (folder / name / OTHERS).exists():
            continue
        sides = {"before": kind.before, "after": kind.after}
        sides |= {f"known{place}": program for place, program in enumerate(kind.known)}
        jobs: list[Callable[[int], None]] = [
            partial(_record, program, folder / name / f"{side}.{number}", steps)
            for number in range(times)
            for side, program in sides.items()
        ]
        print(f"recording {name}: {len(jobs)} times", file=sys.stderr, flush=True)
        with noted_others(folder / name):
            run_ranks(jobs, kind.ranks)


@contextmanager
def noted_others(folder: Path) -> Iterator[None]:
    """Note which share of the processors programs other than this one and its children took."""
    began, busy, own = time.monotonic(), _busy_s(), _own_s()
    yield
    capacity = (time.monotonic() - began) * (os.cpu_count() or 1)
    share = max(_busy_s() - busy - (_own_s() - own), 0.0) / capacity
    (folder / OTHERS).write_text(json.dumps({"share": round(share, 4)}) + "\n")


def _busy_s() -> float:
    """How long the processors of this machine have been at work, as Linux counts."""
    user, nice, system, _, _, irq, soft, *_ = map(int, Path("/proc/stat").read_text().split()[1:9])
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    """How long they have been at work for this program and its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _record(program: Program, folder: Path, steps: int, rank: int) -> None:
    from recording.window import record

    with program.machine.used() if program.machine else nullcontext():
        record(program.step(), folder, steps=steps, rank=rank)


def table(
    found: list[Foretold], failed: Mapping[str, str] = MappingProxyType({}), simpler: bool = True
) -> Iterator[str]:
    """The lines of a table, and what they come to; why some kinds could not be foretold.

    With the errors of all `simpler` ways, or else with those where ranks share processors.
    """
    yield from (f"{name} could not be foretold: {why}\n" for name, why in failed.items())
    if not found:
        return
    yield " ".join(_sum(found, simpler)) + "\n"
    more = NAIVE if simpler else ("best simpler way", "sharing processors")
    yield ("| kind | edits | before, ms | after, ms | noise | error | beyond noise "
           "| beside simpler ways | " + " | ".join(more) + " |")  # fmt: skip
    yield "|---" * (8 + len(more)) + "|"
    for f in found:
        cells = [
            f"{f.name}: {f.what}",
            " ".join(f"`{edit.replace('|', chr(92) + '|')}`" for edit in f.edits),
            f"{np.median(f.before) / 1e6:.1f}",
            f"{f.truth / 1e6:.1f}",
            f"{f.noise:.1%}",
            f"{f.error:+.1%}",
            f"{f.beyond:.1%}",
            f.verdict,
        ]
        errors = f.naive_errors if simpler else [min(f.naive_errors, key=abs), f.shared_error]
        yield "| " + " | ".join([*cells, *(f"{error:+.1%}" for error in errors)]) + " |"


def _sum(found: list[Foretold], simpler: bool) -> Iterator[str]:
    """What a table comes to, in sentences."""
    errors, beyond = (np.median([getattr(f, name) for f in found]) for name in ("size", "beyond"))
    yield (
        f"{len(found)} kinds, {len(found[0].after)} recordings each side: median error "
        f"{errors:.1%}, beyond the noise {beyond:.1%}; {sum(f.beyond <= GOAL for f in found)} "
        f"kinds within {GOAL:.0%} beyond the noise. Closer than every simpler way in "
        f"{sum(f.closer for f in found)}; no simpler way is closer by more than the noise in "
        f"{sum(f.better(f.noise) for f in found)}."
    )
    if not simpler:
        shared = np.median([abs(f.shared_error) for f in found])
        yield f"With `{SHARED}`: median error {shared:.1%}."
    yield (
        f"Other programs took up to {max(f.others for f in found):.1%} of the processors while a "
        "kind was recorded."
    )


def write_page(name: str, lines: Iterator[str]) -> None:
    """Put a table where it stands in the page."""
    begin, end = f"<!-- made by tools/interventions.py: {name} -->", f"<!-- end of {name} -->"
    text = PAGE.read_text()
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    PAGE.write_text(head + begin + "\n" + "\n".join(lines) + "\n" + end + tail)


def main() -> int:
    """Record, foretell, write."""
    from recording.interventions import SETS

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    # What was held out is recorded once, not again by whoever fills the other tables.
    usual = [name for name in SETS if name != "held-out"]
    parser.add_argument("--set", choices=SETS, nargs="+", default=usual, help="which tables")
    parser.add_argument("--times", type=int, default=5, help="recordings of each side")
    parser.add_argument("--steps", type=int, default=5, help="steps in each recording")
    parser.add_argument("--only", nargs="+", metavar="KIND", help="of these kinds; writes nothing")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="where recordings stay")
    parser.add_argument("--print", action="store_true", help="write nothing")
    given = parser.parse_args()
    if os.getloadavg()[0] > 1:
        print("this machine is busy: times will vary with what else runs", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        failures = 0
        for name in given.set:
            kinds = {
                kind: it for kind, it in SETS[name].items() if kind in (given.only or SETS[name])
            }
            folder = (given.keep or Path(temporary)) / name
            record_all(folder, kinds, given.times, given.steps)
            found, failed = foretell_all(folder, kinds, SHARED if name == "processors" else None)
            lines = table(found, failed, simpler=name != "processors")
            if given.print or given.only:
                print("\n".join(lines))
            else:
                write_page(name, lines)
            failures += len(failed)
    return int(bool(failures))


def foretell_all(
    folder: Path, kinds: Mapping[str, Intervention], processors: str | None = None
) -> tuple[list[Foretold], dict[str, str]]:
    """All kinds foretold from their recordings, and why some could not be."""
    found, failed = list[Foretold](), dict[str, str]()
    for name, kind in kinds.items():
        try:
            found.append(foretell(name, kind, folder / name, processors))
        except ChakraError as error:
            failed[name] = error.problem
    return found, failed


if __name__ == "__main__":
    sys.exit(main())
