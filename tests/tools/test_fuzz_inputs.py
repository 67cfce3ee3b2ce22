"""The fuzzer of inputs, for a few inputs; `python tools/fuzz_inputs.py` runs it at length."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import DATA, ROOT

INPUTS = os.environ.get("CHAKRA_ET_FUZZ_INPUTS", "300")


@pytest.mark.skipif(sys.platform == "win32", reason="it needs SIGPROF")
def test_damaged_inputs_end_well(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "tools" / "fuzz_inputs.py"), "--inputs", INPUTS]
    command += ["--keep", str(tmp_path), "--bombs", "0.001"]
    if DATA.is_dir():
        command += ["--data", str(DATA)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "inputs tried" in done.stdout
