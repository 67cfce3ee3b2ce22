"""The manifest of a recording: what was recorded, how, and where."""

from __future__ import annotations

import platform
import time
from typing import Any, Final

import chakra_et
from chakra_et.collection.release import EXTRA, device_names
from chakra_et.collection.settings import Settings
from chakra_et.collection.threads import KEY
from chakra_et.collection.window import Window

FORMAT: Final = "chakra-et collection 1"


def name_of(rank: int) -> str:
    """The name of the manifest of a rank."""
    return f"manifest.{rank}.json"


def manifest_of(window: Window, settings: Settings, steps: range) -> dict[str, Any]:
    """What is known when a window has closed."""
    import torch

    return {
        "format": FORMAT,
        "rank": window.place.rank,
        "world_size": window.place.world_size,
        "backend": window.place.backend,
        "groups": list(window.place.groups),
        "devices": device_names(),
        KEY: window.threads,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "chakra_et": chakra_et.__version__,
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "steps": {"first": steps.start, "recorded": len(steps), "wanted": settings.steps},
        "settings": {
            **settings.told(),
            "shapes": True,
            **{name: window.switches.get(name, False) for name in EXTRA},
        },
    }
