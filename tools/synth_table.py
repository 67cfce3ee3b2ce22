"""Learn real and generated sets, draw samples, compare, and write the tables of the documentation.

    python tools/synth_table.py                      docs/synth.md and docs/anonymise.md
    python tools/synth_table.py --networks DIR       with what networks cost: models of NAME/… in
                                                     DIR/NAME-….json.gz, learned by
                                                     chakra synth fit --learner neural
    python tools/synth_table.py --simulator COMMAND  run sets: COMMAND DIR prints ASTRA-sim's log

Needs the real traces, in CHAKRA_ET_DATA or --data.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from chakra_et.anonymise import READY, anonymise, load_policy
from chakra_et.audit import audit
from chakra_et.loading import load
from chakra_et.model import TraceSet
from chakra_et.passes import cure, write_for_astra_sim
from chakra_et.replay import replay
from chakra_et.simulation import AstraLog, read_astra_log
from chakra_et.synth import (
    Fitted,
    Sampler,
    SetComparison,
    compare_sets,
    fit,
    load_model,
    save_model,
)
from chakra_et.synth.compare import WITHIN
from chakra_et.synth.units import has_steps
from chakra_et.synth.view import view_of
from chakra_et.validators import validate

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- made by tools/synth_table.py -->", "<!-- end -->"
RECORDED = ("resnet_rfid", "dlrm8", "torch213/mlp_1step", "torch213/transformer_5steps",
            "torch213/ddp_2rank", "torch213/tp_2rank")  # fmt: skip
GENERATED = {
    "llama2-7b, tp 2 dp 2": ("--model", "llama2-7b", "--tp", "2", "--dp", "2"),
    "llama2-7b, tp 2 pp 2 dp 2": (
        "--model",
        "llama2-7b",
        "--tp",
        "2",
        "--pp",
        "2",
        "--dp",
        "2",
        "--gbs",
        "8",
    ),
}
ANONYMISED = ("dlrm8", "torch213/tp_2rank", "llama2-7b, tp 2 dp 2")
HALVES = ("dlrm8", "torch213/ddp_2rank", "torch213/tp_2rank")
SEEDS = (1, 2, 3, 4, 5)
_TRIES = 5
"""Faults of its memory end some runs of the simulator, of originals as of samples."""
SECRET = b"only for these tables"


@dataclass
class Simulated:
    """What rules say of a set made for ASTRA-sim, and how its run ended."""

    findings: dict[str, int]
    log: AstraLog | None = None
    runs: int = 0

    def of(self, ranks: int) -> str:
        """How many ranks finished, of how many, and how often it had to be run."""
        if self.log is None:
            return ""
        critical = " (critical)" * bool(self.log.critical)
        return f"{len(self.log.finish_ns)} of {ranks}{critical}" + f" (run {self.runs})" * (
            self.runs > 1
        )


@dataclass
class Row:
    """A set, what was learned of it, and how samples compare."""

    name: str
    fitted: Fitted
    model_bytes: int
    shape: str
    ranks: int
    network: float | None
    comparisons: list[SetComparison] = field(default_factory=list)
    original: Simulated | None = None
    samples: list[Simulated] = field(default_factory=list)


def main() -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("CHAKRA_ET_DATA"))
    parser.add_argument("--networks", type=Path)
    parser.add_argument("--simulator")
    told = parser.parse_args()
    if told.data is None:
        sys.exit("name the real traces with --data or CHAKRA_ET_DATA")
    sets = {name: load(told.data / name) for name in RECORDED}
    sets |= {name: generated(words) for name, words in GENERATED.items()}
    rows = []
    for name, traces in sets.items():
        rows.append(measured(name, traces, told.networks, told.simulator))
        print(name, [[m.name for m in c.unlike] for c in rows[-1].comparisons], flush=True)
    write("synth.md", [learned(rows), alike(rows), halves(sets), simulated(rows)])
    write("anonymise.md", [released(sets, told.simulator), utility(sets)])


def generated(words: tuple[str, ...]) -> TraceSet:
    """A set of `chakra generate llm`."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "chakra_et.cli", "generate", "llm", *words]
        subprocess.run([*command, "-o", folder], check=True, stdout=subprocess.DEVNULL)
        return load(folder)


def measured(name: str, traces: TraceSet, networks: Path | None, simulator: str | None) -> Row:
    """Learn a set, and compare samples of its own size with it."""
    fitted = fit([traces])
    steps = max(view_of(trace, rank).steps for rank, trace in traces.items())
    steps = steps if has_steps(traces) else 1
    ranks = traces.world_size
    bits = network_bits(name, networks)
    row = Row(name, fitted, packed_bytes(fitted), f"{ranks} x {steps}", max(ranks, 2), bits)
    whole = len(traces) == ranks > 1
    row.original = simulate(traces, simulator if whole else None)
    for seed in SEEDS:
        sample = Sampler(fitted.model, ranks, steps, seed=seed).traces()
        wide = sample if ranks > 1 else Sampler(fitted.model, 2, steps, seed=seed).traces()
        row.samples.append(simulate(wide, simulator))
        own, other = row.original.log, row.samples[-1].log
        logs = (own, other) if own is not None and other is not None else None
        row.comparisons.append(compare_sets(traces, sample, logs))
    return row


def packed_bytes(fitted: Fitted) -> int:
    """How large the model file is."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.json.gz"
        save_model(fitted.model, file)
        return file.stat().st_size


def network_bits(name: str, networks: Path | None) -> float | None:
    """What held-out nodes cost under the network that was learned of a set, if there is one."""
    file = None if networks is None else networks / f"{name.replace('/', '-')}.json.gz"
    if file is None or not file.exists():
        return None
    return load_model(file).parts[0].evidence.neural


def simulate(traces: TraceSet, command: str | None) -> Simulated:
    """What `--for astra-sim` makes of a set, and what the simulator says of that."""
    cured = cure(traces, "astra-sim")
    found = Simulated({o.rule.id: o.count for o in cured.left.outcomes})
    if command is None:
        return found
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set"
        write_for_astra_sim(cured.traces, target, "trace")
        log = Path(folder) / "log.txt"
        words = [*shlex.split(command), str(target)]
        for found.runs in range(1, _TRIES + 1):
            log.write_bytes(subprocess.run(words, check=False, stdout=subprocess.PIPE).stdout)
            if log.read_bytes().count(b"] finished,") == len(cured.traces):
                break
        found.log = read_astra_log(log)
    return found


# -------------------------------------------------------------------------------------------------
# Tables


def learned(rows: list[Row]) -> list[str]:
    """What each set was learned as, and how well held-out steps or ranks were foreseen."""
    lines = [
        "| set | ranks x steps | kinds of nodes | model | frequencies | chains | network |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        part = row.fitted.model.parts[0]
        e = part.evidence
        network = "" if row.network is None else f"{row.network:.3f}"
        lines.append(
            f"| {row.name} | {row.shape} | {len(part.tokens)} | {row.model_bytes / 1e3:.0f} kB "
            f"| {e.nothing:.3f} | {e.chosen:.3f} | {network} |"
        )
    return lines


def alike(rows: list[Row]) -> list[str]:
    """Ratios of measures to the spread between units, a row for each measure."""
    names = dict.fromkeys(m.name for row in rows for c in row.comparisons for m in c.measures)
    lines = [
        "| measure | " + " | ".join(row.name for row in rows) + " |",
        "|---" * (len(rows) + 1) + "|",
    ]
    for name in names:
        cells = [cell(row.comparisons, name) for row in rows]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def cell(comparisons: list[SetComparison], name: str) -> str:
    """The median of the ratios, bold outside of 2, and the greatest one where that is outside.

    Values in brackets where there is no spread.
    """
    found = [m for c in comparisons for m in c.measures if m.name == name]
    ratios = [m.ratio for m in found if m.ratio is not None]
    if not found:
        return ""
    if not ratios:
        return f"({median(m.value for m in found):.2f})"
    middle, most = median(ratios), max(ratios)
    told = f"**{middle:.1f}**" if middle > WITHIN else f"{middle:.1f}"
    return told + f", up to {most:.1f}" * (most > WITHIN)


def halves(sets: dict[str, TraceSet]) -> list[str]:
    """Learned from the first half of the ranks, compared with the other half, as that half is."""
    lines = [
        "| set | measures | samples outside twice the spread | the ranks that were learned |",
        "|---|---|---|---|",
    ]
    for name in HALVES:
        traces = sets[name]
        ranks = list(traces)
        seen = TraceSet({r: traces[r] for r in ranks[: len(ranks) // 2]})
        held = TraceSet({r: traces[r] for r in ranks[len(ranks) // 2 :]})
        model, steps = fit([seen]).model, view_of(traces[ranks[0]], 0).steps
        found = []
        for seed in SEEDS:
            sample = Sampler(model, traces.world_size, steps, seed=seed).traces()
            found.append(compare_sets(held, TraceSet({r: sample[r] for r in held})))
        names = dict.fromkeys(m.name for c in found for m in c.measures)
        middle = {n: median(r for c in found if (r := ratio(c, n)) is not None) for n in names}
        told = ", ".join(f"{n} ({r:.1f})" for n, r in middle.items() if r > WITHIN)
        own = outside(compare_sets(held, seen))
        lines.append(f"| {name} | {len(names)} | {told or 'none'} | {own} |")
    return lines


def ratio(comparison: SetComparison, name: str) -> float | None:
    """The ratio of a measure; None without one."""
    return next((m.ratio for m in comparison.measures if m.name == name), None)


def outside(found: SetComparison) -> str:
    """The measures outside, with their ratios."""
    return ", ".join(f"{m.name} ({m.ratio:.1f})" for m in found.unlike) or "none"


def simulated(rows: list[Row]) -> list[str]:
    """Findings of `--profile astra-sim`, and how many ranks finished."""
    lines = [
        "| set | findings: original | samples | ranks that finished: original | samples |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        assert row.original is not None
        own = told_findings([row.original])
        ends = Counter(sample.of(row.ranks) for sample in row.samples)
        ended = ", ".join(f"{n} x {end}" for end, n in ends.items() if end)
        lines.append(
            f"| {row.name} | {own} | {told_findings(row.samples)} "
            f"| {row.original.of(row.ranks)} | {ended} |"
        )
    return lines


def told_findings(sets: list[Simulated]) -> str:
    """The rules that speak of any of some sets, with the greatest count in one of them."""
    rules = sorted({rule for one in sets for rule in one.findings})
    return ", ".join(f"{max(s.findings.get(r, 0) for s in sets)} x {r}" for r in rules) or "none"


def released(sets: dict[str, TraceSet], simulator: str | None) -> list[str]:
    """How much longer anonymised sets take, and what is found in them."""
    lines = [
        "| run | policy | replayed span | bound | cycles | findings | audit |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in ANONYMISED:
        before, own = span_ns(sets[name]), simulate(sets[name], simulator).log
        for ready in READY:
            policy = load_policy(ready)
            done = anonymise(sets[name], policy, SECRET).traces
            log = simulate(done, simulator).log
            cycles = "" if own is None or log is None else f"{last(log) / last(own) - 1:+.1%}"
            findings = ", ".join(o.rule.id for o in validate(done).outcomes) or "none"
            leaks = ", ".join(o.rule.id for o in audit(done, sets[name]).outcomes) or "none"
            lines.append(
                f"| {name} | {ready} | {span_ns(done) / before - 1:+.1%} | {policy.span_error:.0%} "
                f"| {cycles} | {findings} | {leaks} |"
            )
    return lines


def span_ns(traces: TraceSet) -> int:
    """How long the rank that takes longest takes in a replay."""
    return max(figures.span_ns for figures in replay(traces).figures.values())


def last(log: AstraLog) -> int:
    """When the last rank finished."""
    return max(log.finish_ns.values())


def utility(sets: dict[str, TraceSet]) -> list[str]:
    """Anonymised sets beside their originals."""
    lines = ["| run | policy | measures | outside twice the spread |", "|---|---|---|---|"]
    for name in ANONYMISED:
        for policy in READY:
            done = anonymise(sets[name], load_policy(policy), SECRET)
            found = compare_sets(sets[name], done.traces)
            lines.append(f"| {name} | {policy} | {len(found.measures)} | {outside(found)} |")
    return lines


def write(document: str, tables: list[list[str]]) -> None:
    """Put tables into a document, one after the other between its marks."""
    path = ROOT / "docs" / document
    text, done = path.read_text(), ""
    for table in tables:
        before, rest = text.split(BEGIN, 1)
        done += before + BEGIN + "\n\n" + "\n".join(table) + "\n\n" + END
        text = rest.split(END, 1)[1]
    path.write_text(done + text)


if __name__ == "__main__":
    main()
