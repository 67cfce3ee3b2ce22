"""What a run can be asked for. The command line imports this alone, to offer the same choices."""

from __future__ import annotations

from enum import Enum


class BackEnd(str, Enum):
    """Where a program runs; `dry` says what would run, and needs no PyTorch."""

    CPU = "cpu"
    CUDA = "cuda"
    DRY = "dry"


class StandIn(str, Enum):
    """What takes the place of an operation that does not run."""

    SKIP = "skip"
    SPIN = "spin"
    SLEEP = "sleep"


class ShrinkAs(str, Enum):
    """What becomes of a collective of which some ranks are left out."""

    GROUP = "group"
    """The ranks that are left call it among themselves; one alone waits as long as recorded."""
    DELAY = "delay"
    """Each rank waits as long as was recorded."""
