"""Why an operation of a trace does not run: one sentence for each, the same in plan and rule."""

from __future__ import annotations

from typing import Final

NO_INPUTS: Final = "no input values are recorded"
NO_SHAPES: Final = "no shapes or no types of inputs are recorded"
UNREADABLE: Final = "its inputs or outputs cannot be read"
NO_SCHEMA: Final = "no schema is recorded"
BAD_SCHEMA: Final = "its schema cannot be read"
CUT: Final = "it was given a list of which the recorder kept the first 4097 values"
NO_MEMORY: Final = "it was given a tensor without memory of its own: a sparse one, or one of vmap"
OTHER_COUNT: Final = "its inputs do not fit its schema"
COMMUNICATION: Final = "it communicates, and no process group is given"
KERNEL: Final = "it is a generated kernel, which runs on a device only"
NO_NAME: Final = "its name is none that a kernel can have"
DEVICE_ONLY: Final = "it concerns a device, and the program runs on the host"


def absent(path: str) -> str:
    """For an overload that the PyTorch at hand does not have."""
    return f"the PyTorch at hand has no torch.ops.{path}"


def no_source(file: str) -> str:
    """For a generated kernel whose source is not there."""
    name = f"its source {file}" if file else "its source"
    return f"{name} is not at hand; name the directory of sources with --kernels"


def unknown_operators(namespace: str) -> str:
    """For an operator that PyTorch does not bring along."""
    return f"operators of {namespace} are not part of PyTorch; name their module with --module"


def unknown_dtype(dtype: str) -> str:
    """For elements that PyTorch has no name for."""
    return f"elements of type {dtype} are not known"


def unrecorded(argument: str, tag: str) -> str:
    """For a value of which the recorder wrote the kind alone."""
    return f"argument {argument} was recorded as <{tag}>, without its value"
