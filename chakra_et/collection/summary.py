"""What a person should know of a recording."""

from __future__ import annotations

from typing import Any


def lines(manifest: dict[str, Any] | None, problems: list[str]) -> list[str]:
    """A line of what was recorded, if it was, one of its price, and one for each problem."""
    if manifest is None:
        return problems
    first, count = manifest["steps"]["first"], manifest["steps"]["recorded"]
    last = first + count - 1
    which = f"step {first}" if count == 1 else f"steps {first} to {last}"
    files = ", ".join(file["name"] for file in manifest["files"])
    rank, world = manifest["rank"], manifest["world_size"]
    who = f"rank {rank} of {world}"
    told = [f"{who}: recorded {which} ({files})", f"{who}: {price(manifest['times'])}"]
    return [*told, *(f"{who}: warning: {problem}" for problem in problems)]


def price(times: dict[str, Any]) -> str:
    """How long a step took with the profiler, and without."""
    recorded, plain = times["recorded_ms_per_step"], times["plain_ms_per_step"]
    if recorded is None:
        return "the time of a step was not measured"
    with_it = f"{recorded:.1f} ms a step with the profiler (mean of {times['recorded_steps']})"
    if not plain:
        return f"{with_it}; without it not measured: warmup of 2 or more does that"
    change = recorded / plain - 1
    return f"{with_it}, {plain:.1f} ms without (mean of {times['plain_steps']}): {change:+.0%}"
