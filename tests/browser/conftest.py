"""A browser without a window for the tests of pages; without Chromium they are skipped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browsing import Browser, chromium, missing


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all tests."""
    problem = missing()
    if problem is not None:
        pytest.skip(problem)
    with chromium(tmp_path_factory.mktemp("browser")) as found:
        yield found
