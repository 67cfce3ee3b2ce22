"""The first listing of docs/recording.md does what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import chakra_et

pytest.importorskip("torch.profiler")  # plain "torch" could be the folder of this file
pytestmark = pytest.mark.torch

GUIDE = Path(__file__).parents[2] / "docs" / "recording.md"


def test_the_listing_records_a_pair_that_converts(tmp_path: Path) -> None:
    listing = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)[0]
    subprocess.run([sys.executable, "-c", listing], cwd=tmp_path, check=True)
    result = chakra_et.convert(
        host=tmp_path / "host.0.json",
        device=tmp_path / "device.0.json",
        output=tmp_path / "trace.0.et",
    )
    names = [node.name for node in result.trace.nodes]
    assert names.count("aten::addmm") == 2
