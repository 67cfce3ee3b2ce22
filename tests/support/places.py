"""Where tests find traces."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CHAKRA_ET_DATA") or ROOT.parent / "shared" / "data")
NO_DATA = f"no real traces at {DATA}: name their directory in CHAKRA_ET_DATA"
EXAMPLES = ROOT / "examples"
CPP = ROOT / "chakra_et" / "feeder" / "cpp"


def each_of(names: list[str]) -> list[Any]:
    """Parameters for files of the real data; where there are none, one that is skipped."""
    return [*names] or [pytest.param("", marks=pytest.mark.skip(reason=NO_DATA))]


def names_in(directory: Path) -> list[str]:
    """The files that a command put into a directory, without the manifest."""
    return sorted(path.name for path in directory.glob("[!.]*"))
