"""Recordings that several tests look at, made once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recordings of all programs, each in a folder of its own."""
    directory = tmp_path_factory.mktemp("recordings")
    command = [sys.executable, str(TOOLS / "record_pairs.py"), "all", "-o", str(directory)]
    command += ["--truth"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return directory
