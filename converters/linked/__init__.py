"""Host and device traces that mlc-chakra's `chakra_trace_link` has linked into one JSON file."""

from chakra_et.converters.linked.linked_trace import LinkedTrace
from chakra_et.converters.linked.reader import read_linked
from chakra_et.converters.linked.timed import with_own_times

__all__ = ["LinkedTrace", "read_linked", "with_own_times"]
