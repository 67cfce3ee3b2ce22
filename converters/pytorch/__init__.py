"""PyTorch host traces: what the framework saw."""

from typing import TYPE_CHECKING

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.converters.pytorch.forked import has_forked, own_nodes
    from chakra_et.converters.pytorch.reader import read_host

__all__ = ["has_forked", "own_nodes", "read_host"]

# How to recognise the format is asked of every file, how to read it of few.
__getattr__ = lazily(
    __name__,
    {
        "has_forked": "forked",
        "own_nodes": "forked",
        "read_host": "reader",
    },
)
