"""PyTorch host traces: what the framework saw."""

from typing import TYPE_CHECKING

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.converters.pytorch.forked import has_forked, without_forked
    from chakra_et.converters.pytorch.host_trace import HostTrace
    from chakra_et.converters.pytorch.reader import read_host

__all__ = ["HostTrace", "has_forked", "read_host", "without_forked"]

# How to recognise the format is asked of every file, how to read it of few.
__getattr__ = lazily(
    __name__,
    {
        "has_forked": "forked",
        "without_forked": "forked",
        "HostTrace": "host_trace",
        "read_host": "reader",
    },
)
