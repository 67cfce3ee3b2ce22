"""What all tests share: real data, and bounded property tests."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from places import DATA, NO_DATA

# "ci" tries the same inputs on every run, so that a change passes or fails by what it changes.
for name, examples, same in (("quick", 30, False), ("ci", 100, True), ("thorough", 1000, False)):
    settings.register_profile(
        name,
        deadline=None,
        max_examples=examples,
        derandomize=same,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session")
def data() -> Path:
    """The directory of real traces; a test that needs one which is not there is skipped."""
    if not DATA.is_dir():
        pytest.skip(NO_DATA)
    return DATA


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line for all that was skipped, and why."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", [])
    )
    if reasons:
        told = "; ".join(f"{count} x {reason}" for reason, count in reasons.most_common())
        terminalreporter.write_line(f"skipped {reasons.total()}: {told}")
