"""Libraries that are extras: why one cannot be had is said as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from chakra_et.errors import ChakraError
from chakra_et.extras import library


def test_one_that_is_missing_is_to_be_installed() -> None:
    with pytest.raises(ChakraError) as caught:
        library("no_such_library", "tables", "a table", ", or take --to csv")
    assert str(caught.value) == (
        "a table needs no_such_library, which is not installed. "
        "Install it with: pip install 'chakra-et[tables]', or take --to csv"
    )


@pytest.mark.parametrize(
    "error",
    [
        ImportError("libx.so: failed to map segment from shared object"),
        MemoryError("libx.so: failed to map segment from shared object"),
    ],
)
def test_one_that_is_there_and_does_not_load_is_not_to_be_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """As where the process may not take the memory that a library needs."""
    (tmp_path / "heavy_library.py").write_text(f"raise {error!r}\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ChakraError) as caught:
        library("heavy_library", "tables", "a table")
    text = str(caught.value)
    assert "is installed and does not load (libx.so: failed to map segment" in text
    assert "ulimit -v" in text
    assert "pip install" not in text
