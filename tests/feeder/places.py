"""Where things lie in the repository."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPP = ROOT / "chakra_et" / "feeder" / "cpp"
DATA = Path(os.environ.get("CHAKRA_ET_DATA") or ROOT.parent / "shared" / "data")
