"""What the names of kernels tell of the communication that they carry."""

from __future__ import annotations

from functools import lru_cache

from chakra_et.recording import Facts
from chakra_et.recording.libraries import KERNEL_DTYPE, KERNEL_OPERATION, KERNEL_RANKS


@lru_cache(1 << 12)
def kernel_name_facts(name: str) -> Facts | None:
    """What the name tells; whoever adds what else is told takes a copy."""
    match = KERNEL_OPERATION.search(name.split("(")[0])
    return Facts(name=match["task"] or match[0], sources=["kernel name"]) if match else None


@lru_cache(1 << 12)
def kernel_dtype(name: str) -> str | None:
    """The type of the elements that a kernel reduces, where its name tells."""
    match = KERNEL_DTYPE.search(name) or KERNEL_RANKS.search(name)
    return match["dtype"] if match else None


@lru_cache(1 << 12)
def ranks_in_name(kernel: str) -> int | None:
    """How many ranks take part, where a kernel is made for a number of them."""
    match = KERNEL_RANKS.search(kernel)
    return int(match["ranks"]) if match else None
