"""Libraries that not everybody needs: extras, imported where they are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from chakra_et.errors import ChakraError


def library(name: str, extra: str, what: str, instead: str = "") -> Any:
    """An optional library that `what` is to be done with. Raises ChakraError as `needing`."""
    with needing(what, extra, name, instead):
        return import_module(name)


@contextmanager
def needing(what: str, extra: str, name: str, instead: str = "") -> Iterator[None]:
    """Within it, libraries of an extra are imported, `name` first of all.

    Raises ChakraError where that fails: what is missing is to be installed; what is there and does
    not load has another cause, which is told. `instead` ends the remedy with what else would do.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise ChakraError(
            f"{what} needs {error.name or name}, which is not installed",
            remedy=f"Install it with: pip install 'chakra-et[{extra}]'{instead}",
        ) from error
    except (ImportError, OSError, MemoryError) as error:
        raise ChakraError(
            f"{what} needs {name}, which is installed and does not load "
            f"({str(error) or type(error).__name__})",
            remedy=f"Let python -c 'import {name}' succeed: it may lack memory (ulimit -v), or a "
            f"file{instead}.",
        ) from error
