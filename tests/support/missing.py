"""Libraries that are not there."""

from __future__ import annotations

import builtins
from importlib import import_module
from typing import Any

import pytest


def without(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    """Let imports of a library fail, also of what is loaded already."""
    there = builtins.__import__

    def find(name: str, *args: Any, **options: Any) -> Any:
        if name.partition(".")[0] == library:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return there(name, *args, **options)

    def get(name: str) -> Any:
        if name.partition(".")[0] == library:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return import_module(name)

    monkeypatch.setattr("builtins.__import__", find)
    monkeypatch.setattr("chakra_et.extras.import_module", get)
