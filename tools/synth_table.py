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
from dataclasses import dataclass, field
from pathlib import Path

from chakra_et.anonymise import READY, anonymise, load_policy
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
from chakra_et.synth.units import has_steps
from chakra_et.synth.view import view_of
from chakra_et.validators import Severity, validate

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
SEED = 1
_TRIES = 5
"""Faults of its memory end some runs of the simulator, of originals as of samples."""
SECRET = b"only for these tables"


@dataclass
class Row:
    """A set, what was learned of it, and how a sample compares."""

    name: str
    fitted: Fitted
    model_bytes: int
    shape: str
    comparison: SetComparison
    network: float | None
    findings: dict[str, int] = field(default_factory=dict)
    finished: str = ""


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
        print(name, [m.name for m in rows[-1].comparison.unlike], flush=True)
    write("synth.md", [learned(rows), alike(rows), halves(sets), simulated(rows)])
    write("anonymise.md", [utility(sets)])


def generated(words: tuple[str, ...]) -> TraceSet:
    """A set of `chakra generate llm`."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "chakra_et.cli", "generate", "llm", *words]
        subprocess.run([*command, "-o", folder], check=True, stdout=subprocess.DEVNULL)
        return load(folder)


def measured(name: str, traces: TraceSet, networks: Path | None, simulator: str | None) -> Row:
    """Learn a set, and compare a sample of its own size with it."""
    fitted = fit([traces])
    steps = max(view_of(trace, rank).steps for rank, trace in traces.items())
    steps = steps if has_steps(traces) else 1
    ranks = traces.world_size
    sample = Sampler(fitted.model, ranks, steps, seed=SEED).traces()
    shape, found = f"{ranks} x {steps}", compare_sets(traces, sample)
    row = Row(name, fitted, packed_bytes(fitted), shape, found, network_bits(name, networks))
    wide = sample if ranks > 1 else Sampler(fitted.model, 2, steps, seed=SEED).traces()
    fed = cure(replay(wide).traces, "astra-sim").traces
    for outcome in validate(fed, "astra-sim").outcomes:
        if outcome.severity >= Severity.WARNING:
            row.findings[outcome.rule.id] = outcome.count
    if simulator is not None:
        log = simulate(fed, simulator)
        row.finished = f"{len(log.finish_ns)} of {len(fed)}" + " (critical)" * bool(log.critical)
        if len(traces) == ranks > 1:
            own = simulate(cure(traces, "astra-sim").traces, simulator)
            row.comparison = compare_sets(traces, sample, (own, log))
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


def simulate(traces: TraceSet, command: str) -> AstraLog:
    """What the simulator says of a set."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "set"
        write_for_astra_sim(traces, target, "trace")
        log = Path(folder) / "log.txt"
        words = [*shlex.split(command), str(target)]
        for _ in range(_TRIES):
            log.write_bytes(subprocess.run(words, check=False, stdout=subprocess.PIPE).stdout)
            if log.read_bytes().count(b"] finished,") == len(traces):
                break
        return read_astra_log(log)


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
    names = dict.fromkeys(m.name for row in rows for m in row.comparison.measures)
    lines = [
        "| measure | " + " | ".join(row.name for row in rows) + " |",
        "|---" * (len(rows) + 1) + "|",
    ]
    for name in names:
        cells = []
        for row in rows:
            found = [m for m in row.comparison.measures if m.name == name]
            cells.append(cell(found[0].value, found[0].ratio) if found else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def cell(value: float, ratio: float | None) -> str:
    """The ratio, or the value in brackets where there is no spread; bold outside of twice it."""
    if ratio is None:
        return f"({value:.2f})"
    return f"**{ratio:.1f}**" if ratio > 2 else f"{ratio:.1f}"


def halves(sets: dict[str, TraceSet]) -> list[str]:
    """Learned from the first half of the ranks, compared with the other half."""
    lines = ["| set | measures | outside twice the spread |", "|---|---|---|"]
    for name in HALVES:
        traces = sets[name]
        ranks = list(traces)
        seen, held = ranks[: len(ranks) // 2], ranks[len(ranks) // 2 :]
        model = fit([TraceSet({r: traces[r] for r in seen})]).model
        steps = view_of(traces[ranks[0]], 0).steps
        sample = Sampler(model, traces.world_size, steps, seed=SEED).traces()
        found = compare_sets(
            TraceSet({r: traces[r] for r in held}), TraceSet({r: sample[r] for r in held})
        )
        lines.append(f"| {name} | {len(found.measures)} | {outside(found)} |")
    return lines


def outside(found: SetComparison) -> str:
    """The measures outside, with their ratios."""
    return ", ".join(f"{m.name} ({m.ratio:.1f})" for m in found.unlike) or "none"


def simulated(rows: list[Row]) -> list[str]:
    """Findings of `--profile astra-sim`, and how many ranks finished."""
    lines = ["| set | errors and warnings | ranks that finished |", "|---|---|---|"]
    for row in rows:
        findings = ", ".join(f"{n} x {rule}" for rule, n in row.findings.items()) or "none"
        lines.append(f"| {row.name} | {findings} | {row.finished} |")
    return lines


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
