"""The synchronisation edges that HTA's critical-path analysis finds, as JSON.

    python tools/hta_edges.py DIRECTORY ANNOTATION [INSTANCE]

Runs in an environment that has HolisticTraceAnalysis and pandas 2; `compare_hta.py` sees to it.
DIRECTORY holds one Kineto profile of rank 0. Each edge is a pair of correlation ids.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from typing import Any


def edges(directory: str, annotation: str, instance: int) -> list[list[int]]:
    """Pairs (device work, what waits for it) of the edges of type SYNC_DEPENDENCY."""
    from hta.trace_analysis import TraceAnalysis  # type: ignore[import-not-found]

    analysis = TraceAnalysis(trace_dir=directory)
    graph, sound = analysis.critical_path_analysis(0, annotation, instance)
    if not sound:
        raise SystemExit("HTA found no critical path")

    def correlation(node: int) -> int:
        return int(graph.trace_df.loc[graph.node_list[node].ev_idx, "correlation"])

    found: set[tuple[int, int]] = set()
    pairs: Any = graph.edges(data=True)
    for source, target, data in pairs:
        if data["object"].type.name == "SYNC_DEPENDENCY":
            found.add((correlation(source), correlation(target)))
    return [list(pair) for pair in sorted(found)]


if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):
        result = edges(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    print(json.dumps(result))
