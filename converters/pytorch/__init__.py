"""PyTorch host traces: what the framework saw."""

from chakra_et.converters.pytorch.forked import has_forked, without_forked
from chakra_et.converters.pytorch.host_trace import HostTrace
from chakra_et.converters.pytorch.reader import read_host

__all__ = ["HostTrace", "has_forked", "read_host", "without_forked"]
