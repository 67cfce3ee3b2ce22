"""The examples in docs/build.md run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import chakra_et

GUIDE = Path(__file__).parents[2] / "docs" / "build.md"


def test_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        exec(compile(block, str(GUIDE), "exec"), names)
    assert len(names["workload"].comm_groups()) == 8 + 8 + 8 + 8 + 4 + 2
    (trace,) = names["Workload"](rank=1).traces(names["layers"]).values()
    assert [node.layer for node in trace.nodes] == [0, 1, 2, 3]
    result = chakra_et.validate(tmp_path / "ring-8", "astra-sim")
    assert not result.outcomes
