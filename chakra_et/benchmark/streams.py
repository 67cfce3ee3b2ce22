"""The streams of a device on which a program launches, and which of them wait for which.

An operation runs on the stream on which it launched its work in the recording. Before it begins,
that stream waits for all others that were the last to work on its tensors: what a recording's waits
are for, as memory is handed out anew.
"""

from __future__ import annotations

from chakra_et.benchmark.plan import NO_STREAM, Plan
from chakra_et.benchmark.views import refs


def stream_statements(plan: Plan) -> dict[int, list[str]]:
    """For operations the statements that choose their stream; none where there is but one."""
    used = {operation.stream for operation in plan.operations} - {NO_STREAM}
    found: dict[int, list[str]] = {}
    if len(used) < 2:
        return found
    last: dict[int, int] = {}
    current = NO_STREAM
    for number, operation in enumerate(plan.operations):
        if operation.stream == NO_STREAM or operation.reason:
            continue
        lines = [] if operation.stream == current else [f"use({operation.stream})"]
        current = operation.stream
        views = (*refs(operation.inputs), *refs(operation.outputs))
        storages = {plan.views[view].storage for view in views}
        others = {last[s] for s in storages if last.get(s, current) != current}
        lines += [f"follow({current}, {other})" for other in sorted(others)]
        last.update(dict.fromkeys(storages, current))
        if lines:
            found[number] = lines
    return found
