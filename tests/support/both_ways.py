"""The same work with the compiled kernel and without it."""

from __future__ import annotations

from typing import Any

import pytest

from chakra_et import ChakraError
from chakra_et.kernel import FORCE_PYTHON, kernel

needs_kernel = pytest.mark.skipif(kernel() is None, reason="no compiled kernel is built")


def both_ways(work: Any, *arguments: Any) -> tuple[Any, Any]:
    """What a function gives with the kernel and without it; the text of an error that it raises."""
    found = []
    for pure in ("", "1"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(FORCE_PYTHON, pure)
            try:
                found.append(work(*arguments))
            except (ChakraError, OverflowError) as error:
                found.append(f"{type(error).__name__}: {error}")
    return found[0], found[1]
