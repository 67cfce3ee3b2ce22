"""Where tests find traces."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("CHAKRA_ET_DATA") or ROOT.parent / "shared" / "data")
EXAMPLES = ROOT / "examples"
