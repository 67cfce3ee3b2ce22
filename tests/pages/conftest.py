"""Traces that several tests of pages look at, converted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from chakra_et.directory import convert_files


@pytest.fixture(scope="session")
def dlrm8(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of the ETs of the eight ranks."""
    folder = tmp_path_factory.mktemp("dlrm8")
    convert_files(data / "dlrm8", folder)
    return folder
