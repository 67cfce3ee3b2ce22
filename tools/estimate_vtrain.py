"""Hold estimates against vTrain's measured iteration times, and write the tables of the docs.

    python tools/estimate_vtrain.py DIR            # print figures for several seeds
    python tools/estimate_vtrain.py DIR --write    # also constants.toml and the tables in the docs

DIR holds `single.csv` and `multi.csv` of VIA-Research/vTrain (`data/`). Constants are fitted on a
tenth of `single.csv`, drawn by a seed; errors are those of all other rows. No row of `multi.csv` is
fitted. What vTrain's configurations (`config/validation`) say is taken from there: every layer is
recomputed, 1F1B, gradients are summed at the end, eight GPUs a node, 800 Gb/s between nodes.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from chakra_et.estimate import (
    FITTED,
    ROOFLINE,
    Case,
    Constants,
    Machine,
    Measured,
    case_of_plan,
    fit,
)
from chakra_et.network import load_topology
from chakra_et.workloads import Model, Plan, Recompute, device

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "estimate.md"
CONSTANTS = ROOT / "chakra_et" / "estimate" / "constants.toml"
SEEDS = range(3)
BEGIN, END = "<!-- figures: tools/estimate_vtrain.py -->", "<!-- end of figures -->"


@dataclass(frozen=True)
class Row:
    """A line of vTrain's tables."""

    plan: Plan
    step_ns: float
    size: str


def read_rows(path: Path) -> list[Row]:
    """All rows of a table."""
    with path.open(newline="") as file:
        return [_row(line) for line in csv.DictReader(file)]


def _row(line: dict[str, str]) -> Row:
    def number(name: str) -> int:
        return int(line[name])

    hidden = number("hidden size")
    model = Model(
        name="GPT", layers=number("# layers"), hidden=hidden, heads=number("attention heads"),
        ffn=4 * hidden, vocabulary=50257, gated=False, bias=True, norm_bias=True, tied=True,
        positions=number("sequence length"), dropout=True,
    )  # fmt: skip
    plan = Plan(
        model=model, tp=number("tensor parallelism"), dp=number("data parallelism"),
        pp=number("pipeline parallelism"), micro_batch=number("micro batch"),
        global_batch=number("global batch"), sequence=number("sequence length"), zero=0,
        gradient_bytes=2, recompute=Recompute.FULL, dtype="fp16", vocabulary_multiple=128,
    )  # fmt: skip
    billions = line.get("Parameters (billion)")
    size = f"{billions} B" if billions else f"hidden {hidden}"
    return Row(plan, float(line["iteration time (ms)"]) * 1e6, size)


def machine(constants: Constants) -> Machine:
    """What vTrain measured on."""
    return Machine(device("a100-40gb"), load_topology("dgx-a100"), constants)


def fitted(rows: Sequence[Row], start: Constants, names: Sequence[str] = FITTED) -> Constants:
    """The constants that fit some rows."""
    here = machine(start)
    known = [Measured(case_of_plan(row.plan, here), row.step_ns) for row in rows]
    return fit(known, start, names)


def tenth(count: int, seed: int) -> set[int]:
    """The rows that are fitted: a tenth, drawn by a seed."""
    return set(np.random.default_rng(seed).permutation(count)[: count // 10].tolist())


def errors(rows: Sequence[Row], constants: Sequence[Constants]) -> np.ndarray:
    """Relative errors of the estimates: [rows, sets of constants]. Each graph is made once."""
    with ProcessPoolExecutor(2) as pool:
        work = pool.map(_errors_of, rows, [list(constants)] * len(rows), chunksize=8)
        return np.array(list(work))


def _errors_of(row: Row, constants: list[Constants]) -> list[float]:
    case = case_of_plan(row.plan, machine(constants[0]))
    return [_step_ns(case, one) / row.step_ns - 1 for one in constants]


def _step_ns(case: Case, constants: Constants) -> float:
    # Peaks alone know no host.
    here = case if constants.host else Case(case.copies, machine(constants))
    return here.run(here.costs(constants)).step_ns


def mape(relative: np.ndarray) -> float:
    """The mean absolute error in percent."""
    return float(100 * np.abs(relative).mean())


def main() -> None:
    """Fit, estimate, and print or write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--write", action="store_true", help="Write constants and docs.")
    given = parser.parse_args()
    single, multi = (read_rows(given.directory / f"{name}.csv") for name in ("single", "multi"))
    text, constants = figures(single, multi)
    print(text)
    if given.write:
        _write(text, constants)


def figures(single: list[Row], multi: list[Row]) -> tuple[str, Constants]:
    """The tables, and the constants of the first seed."""
    start = Constants()
    drawn = [tenth(len(single), seed) for seed in SEEDS]
    assumed = [fitted([single[i] for i in sorted(rows)], start) for rows in drawn]
    all_names = (*FITTED, "matrix_efficiency")
    first = [single[i] for i in sorted(drawn[0])]
    free = fitted(first, start, all_names)
    of_multi = tenth(len(multi), 0)
    cluster = fitted([multi[i] for i in sorted(of_multi)], free, ("matrix_efficiency",))
    sets = [*assumed, free, cluster, ROOFLINE]
    of_single, of_cluster = errors(single, sets), errors(multi, sets)
    rest = [np.array([i not in rows for i in range(len(single))]) for rows in drawn]
    left = np.array([i not in of_multi for i in range(len(multi))])
    count = len(assumed)
    lines = ["| constants | `single.csv` | `multi.csv` |", "|---|---|---|"]
    for seed in range(count):
        told = f"fitted, `matrix_efficiency` assumed (seed {seed})"
        lines.append(_line(told, of_single[rest[seed], seed], of_cluster[:, seed]))
    at = {"free": count, "cluster": count + 1, "peaks": count + 2}
    lines += [
        _line("`matrix_efficiency` fitted, too (seed 0): "
              f"{free.matrix_efficiency:.2f}", of_single[rest[0], at["free"]],
              of_cluster[:, at["free"]]),
        _line(f"and once more on {len(of_multi)} rows of `multi.csv`: "
              f"{cluster.matrix_efficiency:.2f}", None, of_cluster[left, at["cluster"]]),
        _line("peaks alone", of_single[:, at["peaks"]], of_cluster[:, at["peaks"]]),
    ]  # fmt: skip
    lines += ["", "| constant | seeds " + ", ".join(map(str, SEEDS)) + " |", "|---|---|"]
    for name in FITTED:
        values = ", ".join(f"{getattr(one, name):.4g}" for one in assumed)
        lines.append(f"| `{name}` | {values} |")
    kept = [row for row, is_rest in zip(single, rest[0], strict=True) if is_rest]
    lines += ["", *_by(kept, of_single[rest[0], 0], "single.csv, seed 0")]
    lines += ["", *_by(multi, of_cluster[:, 0], "multi.csv, seed 0")]
    return "\n".join(lines), assumed[0]


def _line(told: str, single: np.ndarray | None, multi: np.ndarray) -> str:
    shown = [
        "" if e is None else f"{mape(e):.2f} % (median {100 * np.median(np.abs(e)):.1f} %)"
        for e in (single, multi)
    ]
    return f"| {told} | {shown[0]} | {shown[1]} |"


def _by(rows: Sequence[Row], relative: np.ndarray, title: str) -> list[str]:
    """Errors by tp, pp, dp, micro-batch and size."""
    lines = [f"| {title} | rows | mean absolute error | median error |", "|---|---|---|---|"]
    keys: dict[str, Callable[[Row], str]] = {
        "tp": lambda row: str(row.plan.tp),
        "pp": lambda row: str(row.plan.pp),
        "dp": lambda row: str(row.plan.dp),
        "micro-batch": lambda row: str(row.plan.micro_batch),
        "size": lambda row: row.size,
    }
    for name, key in keys.items():
        groups: dict[str, list[float]] = defaultdict(list)
        for row, error in zip(rows, relative.tolist(), strict=True):
            groups[key(row)].append(error)
        for value, found in sorted(groups.items(), key=lambda item: _number(item[0])):
            each = np.array(found)
            lines.append(
                f"| {name} {value} | {len(each)} | {mape(each):.1f} % | "
                f"{100 * np.median(each):+.1f} % |"
            )
    return lines


def _number(text: str) -> float:
    return float("".join(c for c in text if c.isdigit() or c == "."))


def _write(text: str, constants: Constants) -> None:
    """Put the tables into the docs, and the constants of the first seed into the package."""
    before, rest = DOCS.read_text().split(BEGIN)
    _, after = rest.split(END)
    DOCS.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
    lines = [
        "# Written by tools/estimate_vtrain.py: fitted on a tenth of VIA-Research/vTrain's",
        "# data/single.csv (seed 0). Efficiencies of matrix products, memory and links, and the",
        "# number of attention's kernels, are assumed.",
    ]
    for name, value in asdict(constants).items():
        lines.append(f"{name} = {float(f'{value:.4g}') if isinstance(value, float) else value}")
    CONSTANTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
