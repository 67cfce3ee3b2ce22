"""HTA's breakdown of device time, of one profile for each rank, as JSON.

    python tools/hta_breakdown.py DIRECTORY

Runs in an environment that has HolisticTraceAnalysis and pandas 2; `compare_breakdown.py` sees to
it. DIRECTORY holds Kineto profiles. Times are in microseconds, as HTA has them.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import Any


def breakdown(directory: str) -> dict[str, Any]:
    """HTA's temporal breakdown, kernel types and idle times, as lists of rows."""
    from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found]

    analysis = TraceAnalysis(trace_dir=directory, include_last_profiler_step=True)
    ranks = sorted(analysis.t.traces)
    kinds, _ = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000)
    idle, _ = analysis.get_idle_time_breakdown(ranks=ranks, visualize=False)
    return {
        "temporal": analysis.get_temporal_breakdown(visualize=False).to_dict("records"),
        "kinds": kinds.to_dict("records"),
        "idle": idle.to_dict("records"),
    }


if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        result = breakdown(sys.argv[1])
    print(json.dumps(result, default=str))
