"""The listings of docs/recording.md do what the page says."""

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
LISTINGS = re.findall(r"^```python\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("listing", LISTINGS[:2], ids=["with collect", "by hand"])
def test_a_listing_records_two_steps_that_convert(listing: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", listing], cwd=tmp_path, check=True)
    (conversion,) = chakra_et.convert_files(tmp_path, None)
    names = [node.name for node in conversion.trace.nodes]
    assert names.count("aten::addmm") == 2
    assert sum(name.startswith("ProfilerStep#") for name in names) == 2
