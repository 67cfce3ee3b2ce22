"""Compare our breakdown of device time with that of HTA.

    python tools/compare_breakdown.py [--data DIR]

Runs HolisticTraceAnalysis, in the environment of `mlc_env.py`, on the device traces of real runs,
and prints for each rank what both say, in microseconds: time from the first to the last device
work, idle in it, computing, busy otherwise; and for each stream its gaps, by what held work back.
Needs the real traces, in CHAKRA_ET_DATA or --data. Exits with 1 where a figure differs by more than
HTA's rounding of times to whole microseconds can explain, and what it leaves out: work whose launch
lies before the recording. docs/tables.md has the outcome.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from mlc_env import mlc_python
from traces_index import DATA

from chakra_et.conversion import trace_set
from chakra_et.directory import convert_files
from chakra_et.model import TraceSet
from chakra_et.tables import device_table, idle_table
from chakra_et.tables.places import Places

RUNS = ("dlrm8/device.*", "torchrec4/device.*", "resnet_rfid/device.*", "simple_add/device.*")


def theirs(python: Path, profiles: list[Path]) -> dict[str, Any]:
    """HTA's figures."""
    with tempfile.TemporaryDirectory() as folder:
        for profile in profiles:
            shutil.copy(profile, folder)
        script = Path(__file__).with_name("hta_breakdown.py")
        done = subprocess.run(
            [python, "-W", "ignore", script, folder], check=True, capture_output=True, text=True
        )
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def ours(traces: TraceSet) -> dict[int, dict[str, float]]:
    """The same figures of ours, in microseconds."""
    rows = {row["rank"]: row for row in device_table(traces).as_dicts()}
    return {
        rank: {
            "kernel": row["span_ns"] / 1000,
            "idle": row["idle_ns"] / 1000,
            "compute": row["compute_ns"] / 1000,
            "other": (row["busy_ns"] - row["compute_ns"]) / 1000,
        }
        for rank, row in rows.items()
    }


def slack(traces: TraceSet, rank: int) -> tuple[float, int]:
    """What may differ, in microseconds: rounding, and work without a launch; and its pieces."""
    trace = traces[rank]
    places = Places(trace)
    work = ~places.on_host & places.ran
    alone = work & (places.launcher < 0)
    took = trace.nodes.duration_ns
    fractions = bool((trace.nodes.start_ns[work] % 1000).any() or (took[work] % 1000).any())
    rounding = float(np.count_nonzero(work)) if fractions else 0.0
    return rounding + float(took[alone].sum()) / 1000, int(np.count_nonzero(alone))


def compare(name: str, found: dict[str, Any], traces: TraceSet) -> int:
    """Print both; how many figures differ by more than can be."""
    wrong = 0
    mine = ours(traces)
    for row in found["temporal"]:
        rank = int(row["rank"])
        allowed, alone = slack(traces, rank)
        print(f"{name}, rank {rank} (may differ by {allowed:.0f} us, {alone} without a launch)")
        names = {"kernel": "kernel", "idle": "idle", "compute": "compute", "other": "non_compute"}
        for what, called in names.items():
            here, there = mine[rank][what], float(row[f"{called}_time(us)"])
            wrong += abs(here - there) > allowed
            print(f"  {what:8} {here:14.3f}  HTA {there:14.3f}  {here - there:+.3f}")
    gaps = {
        (row["rank"], row["stream"].removeprefix("stream ")): row
        for row in idle_table(traces).as_dicts()
    }
    kinds = {"host_wait": "host_ns", "kernel_wait": "short_ns", "other": "other_ns"}
    for row in found["idle"]:
        gap = gaps.get((int(row["rank"]), str(row["stream"])))
        if gap is None or row["idle_category"] not in kinds:
            continue
        here, there = gap[kinds[row["idle_category"]]] / 1000, float(row["idle_time"])
        wrong += abs(here - there) > slack(traces, int(row["rank"]))[0]
        if here != there:
            place = f"rank {row['rank']} stream {row['stream']} {row['idle_category']}"
            print(f"  {place}: {here:.3f}  HTA {there:.3f}  {here - there:+.3f}")
    return wrong


def main() -> int:
    """Compare on every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=DATA)
    data: Path = parser.parse_args().data
    python = mlc_python()
    wrong = 0
    for pattern in RUNS:
        profiles = sorted(data.glob(pattern))
        traces = trace_set(convert_files(profiles, None))
        wrong += compare(pattern.partition("/")[0], theirs(python, profiles), traces)
    print(f"{wrong} figures differ by more than can be explained")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
