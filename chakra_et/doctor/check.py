"""A check: what may be lacking, how bad that is, and the remedy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from chakra_et.doctor.capture import Capture
from chakra_et.validators.finding import Severity

Look: TypeAlias = Callable[[Capture], "str | None"]
"""Looks at one rank: what it lacks, in words with figures, or None."""
LookAtRun: TypeAlias = Callable[[list[Capture]], "str | None"]
"""Looks at all ranks."""


@dataclass(frozen=True)
class Check:
    """`look` is for one rank, `look_at_run` for all; a check has one of them."""

    name: str
    severity: Severity
    remedy: str
    look: Look | None = None
    look_at_run: LookAtRun | None = None
