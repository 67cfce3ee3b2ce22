"""The PyTorch at hand: what it has, and where a program can run."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Any

from chakra_et.collection.release import expect_torch
from chakra_et.errors import ChakraError
from chakra_et.io.memory import available_bytes


def import_modules(modules: tuple[str, ...]) -> None:
    """Import modules that register operators. Raises ChakraError where one cannot be imported."""
    expect_torch()
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:
            raise ChakraError(
                f"--module {module} cannot be imported ({error})",
                remedy="Install it beside PyTorch, or put its directory into PYTHONPATH.",
            ) from error
        except Exception as error:  # Its own code may raise anything.
            raise ChakraError(
                f"--module {module} raised {type(error).__name__} when it was imported: {error}",
                remedy=f"Mend the module until `python -c 'import {module}'` succeeds.",
            ) from error


def registered_by(modules: tuple[str, ...], at_hand: bool) -> frozenset[str]:
    """Namespaces that modules bring along: those that PyTorch knows once they are imported.

    Where PyTorch is not `at_hand`, a module is taken to bring the namespace of its own name.
    """
    if not modules:
        return frozenset()
    if not at_hand:
        return frozenset(part for module in modules for part in module.split("."))
    import torch

    names = torch._C._dispatch_get_all_op_names()
    return frozenset(name.partition("::")[0] for name in names)


@cache
def has_overload(path: str) -> bool:
    """Whether `torch.ops` has an overload such as `aten.add.Tensor`."""
    import torch

    found: Any = torch.ops
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except (AttributeError, RuntimeError):
            return False
    return True


def release() -> str:
    """The version of PyTorch."""
    import torch

    return str(torch.__version__)


def expect_device(device: str) -> None:
    """Raise ChakraError where the device is not there."""
    expect_torch()
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ChakraError(
            "no CUDA device is available to PyTorch",
            remedy="Give --back-end cpu, or --back-end dry to see what would run.",
        )


def expect_memory(wanted_bytes: int, device: str) -> None:
    """Raise ChakraError where tensors of so many bytes do not fit."""
    import torch

    on_device = device.startswith("cuda")
    free = int(torch.cuda.mem_get_info()[0]) if on_device else available_bytes()
    if wanted_bytes > free:
        raise ChakraError(
            f"its tensors need {wanted_bytes / 1e9:.2f} GB at once, and {device} has "
            f"{free / 1e9:.2f} GB free",
            remedy="Run fewer steps (--steps N), or on a machine with more memory.",
        )


def rank_at_hand() -> int | None:
    """The rank that a launcher such as torchrun gave this process."""
    text = os.environ.get("RANK", "")
    return int(text) if text.isdigit() else None
