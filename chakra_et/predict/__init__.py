"""Predictions: the graph of one run with the durations of another."""

from chakra_et.predict.places import same_places
from chakra_et.predict.times_of import Moved, recorded_span_ns, times_of

__all__ = ["Moved", "recorded_span_ns", "same_places", "times_of"]
