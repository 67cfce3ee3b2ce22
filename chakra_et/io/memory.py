"""Care for memory while many objects are made."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def collection_paused() -> Iterator[None]:
    """No garbage collection while a long file is read.

    Each collection walks every object made so far, which costs most of the time of a bulk load;
    nothing that is read holds cycles.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def available_bytes() -> int:
    """Memory that can be had without swapping, as far as the system tells; else half of all."""
    try:
        match = re.search(r"MemAvailable:\s*(\d+) kB", Path("/proc/meminfo").read_text())
    except OSError:
        match = None
    if match:
        return int(match[1]) * 1024
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, OSError, ValueError):
        return 1 << 31
