"""Compare our sync and event edges with those of HTA's critical-path analysis.

    python tools/compare_hta.py [--data DIR]

Runs HolisticTraceAnalysis, in the environment of `mlc_env.py`, on the traces that have records of
waits, and lists the edges that only one of the two finds, as correlation ids.
Needs the real traces, in CHAKRA_ET_DATA or --data. Exits with 1 if HTA finds an edge that we lack.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from mlc_env import mlc_python
from traces_index import DATA

from chakra_et.conversion import convert
from chakra_et.model import EdgeKind, Trace

ALEXNET = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
WINDOWS = (
    ("kineto/event_sync.json.gz", "ProfilerStep", 0),
    ("kineto/cuda_sync_a100.json.gz", "[param|cuda]", 0),
    ("kineto/cuda_sync_a100.json.gz", ALEXNET, 0),
    ("kineto/cuda_sync_a100.json.gz", ALEXNET, 1),
)


def theirs(python: Path, profile: Path, annotation: str, instance: int) -> set[tuple[int, int]]:
    """HTA's edges in one window."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(profile, folder)
        script = Path(__file__).with_name("hta_edges.py")
        done = subprocess.run(
            [python, "-W", "ignore", script, folder, annotation, str(instance)],
            check=True,
            capture_output=True,
            text=True,
        )
    return {(source, target) for source, target in json.loads(done.stdout)}


def ours(trace: Trace) -> dict[tuple[int, int], str]:
    """Our sync and event edges, with kind and mark."""
    correlation = trace.nodes.attributes.dense("correlation", -1, np.int64)
    wanted = np.isin(trace.edges.kind, (EdgeKind.SYNC, EdgeKind.EVENT))
    rows = zip(
        correlation[trace.source_rows()[wanted]].tolist(),
        correlation[trace.edges.target[wanted]].tolist(),
        trace.edges.kind[wanted].tolist(),
        trace.edges.inferred[wanted].tolist(),
        strict=True,
    )
    return {(s, t): EdgeKind(k).label + "?" * guessed for s, t, k, guessed in rows}


def main() -> int:
    """Compare on every window."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=DATA)
    data: Path = parser.parse_args().data
    python = mlc_python()
    lacking = 0
    for name, annotation, instance in WINDOWS:
        mine = ours(convert(None, data / name).trace)
        other = theirs(python, data / name, annotation, instance)
        missing = sorted(other - set(mine))
        lacking += len(missing)
        print(f"{name} {annotation!r} {instance}: HTA {len(other)} edges, of which we have "
              f"{len(other & set(mine))}; we have {len(mine)} in the whole trace")  # fmt: skip
        for edge in missing:
            print(f"  only HTA: {edge[0]} -> {edge[1]}")
        for edge, kind in sorted(mine.items()):
            if edge not in other:
                print(f"  only ours: {edge[0]} -> {edge[1]} ({kind})")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
