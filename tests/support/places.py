"""Where tests find traces."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("CHAKRA_ET_DATA") or ROOT.parent / "shared" / "data")
EXAMPLES = ROOT / "examples"
CPP = ROOT / "chakra_et" / "feeder" / "cpp"


def names_in(directory: Path) -> list[str]:
    """The files that a command put into a directory, without the manifest."""
    return sorted(path.name for path in directory.glob("[!.]*"))
