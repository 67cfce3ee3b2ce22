"""The compiled kernel, where it is installed: the same columns and the same bytes in less time.

It reads pieces of long JSON arrays into columns and writes columns as records of an ET. It is built
when the package is installed, if there is a compiler and simdjson; nothing needs it. Whatever it
does not know, it leaves to the code in Python beside which it stands.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import Final

INTERFACE: Final = 14
"""What this version and the kernel expect of each other; another number is that of an old build."""
FORCE_PYTHON: Final = "CHAKRA_ET_PURE_PYTHON"
"""The environment variable that turns the kernel off, unless it is empty or 0."""


def _load() -> tuple[ModuleType | None, str]:
    """The module, and what to say of it."""
    try:
        module = import_module("chakra_et.kernel._native")
    except ImportError as error:
        return None, "not built" if isinstance(error, ModuleNotFoundError) else f"broken: {error}"
    if getattr(module, "INTERFACE", None) != INTERFACE:
        return None, "out of date; install the package again"
    return module, f"compiled, {module.SIMD}"


_MODULE, _STATE = _load()


def kernel() -> ModuleType | None:
    """The compiled module; None where there is none, or where it is turned off."""
    return _MODULE if os.environ.get(FORCE_PYTHON, "") in ("", "0") else None


def state() -> str:
    """Which code runs, in words."""
    if kernel() is not None:
        return f"kernel: {_STATE}"
    reason = f"turned off by {FORCE_PYTHON}" if _MODULE is not None else _STATE
    return f"pure Python (kernel {reason})"
