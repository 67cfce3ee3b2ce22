"""PyTorch host traces: what the framework saw."""

from chakra_et.converters.pytorch.host_trace import HostTrace
from chakra_et.converters.pytorch.reader import read_host

__all__ = ["HostTrace", "read_host"]
