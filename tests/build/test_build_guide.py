"""The examples in docs/build.md and docs/generate.md run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from doc_blocks import blocks, run_python

import chakra_et


def run_examples(guide: str) -> dict[str, Any]:
    """Run the Python of a guide; the names that it leaves."""
    names: dict[str, Any] = {}
    for block in blocks(f"docs/{guide}"):
        if block.language == "python":
            run_python(block, names)
    return names


def test_generating() -> None:
    traces = run_examples("generate.md")["traces"]
    assert len(traces) == 4
    assert all(trace.nodes.duration_ns.any() for trace in traces.values())


def test_building(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_examples("build.md")
    assert len(names["workload"].comm_groups()) == 8 + 8 + 8 + 8 + 4 + 2
    (trace,) = names["Workload"](rank=1).traces(names["layers"]).values()
    assert [node.layer for node in trace.nodes] == [0, 1, 2, 3]
    result = chakra_et.validate(tmp_path / "ring-8", "astra-sim")
    assert not result.outcomes
