"""Host and device traces that mlc-chakra's `chakra_trace_link` has linked into one JSON file."""

from typing import TYPE_CHECKING

from chakra_et.lazy import lazily

if TYPE_CHECKING:
    from chakra_et.converters.linked.reader import read_linked
    from chakra_et.converters.linked.timed import with_own_times

__all__ = ["read_linked", "with_own_times"]

# How to recognise the format is asked of every file, how to read it of few.
__getattr__ = lazily(__name__, {"read_linked": "reader", "with_own_times": "timed"})
