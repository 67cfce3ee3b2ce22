"""Docstrings of functions in modules that are not run: help for all verbs imports none of them."""

from __future__ import annotations

import inspect
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from types import CodeType


def docstring_of(module: str, *functions: str) -> str | None:
    """That of the first of some functions at the top of a module that has one; None if none has.

    It stands in the module's code, which Python keeps compiled. None, too, where Python drops
    docstrings, or where the module comes from elsewhere than a file.
    """
    spec = find_spec(module)
    if sys.flags.optimize > 1 or spec is None or not isinstance(spec.loader, SourceFileLoader):
        return None
    code = spec.loader.get_code(module)
    constants = code.co_consts if code is not None else ()
    inner = {part.co_name: part for part in constants if isinstance(part, CodeType)}
    for name in functions:
        first = inner[name].co_consts[:1] if name in inner else ()
        if first and isinstance(first[0], str):
            return inspect.cleandoc(first[0])
    return None
