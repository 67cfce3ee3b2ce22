"""Times of kernels and operators by what they work on: fitted to traces, asked for any shapes.

>>> from chakra_et.kerneltimes import KernelTimes, calls_of
>>> table = KernelTimes.load("a100.json")  # doctest: +SKIP
>>> calls = calls_of(trace)  # doctest: +SKIP
>>> times_ns, provenance = table.times_ns(calls.keys, calls.features)  # doctest: +SKIP
"""

from chakra_et.kerneltimes.calls import Calls, calls_of
from chakra_et.kerneltimes.features import FEATURES, Features, Key, no_features
from chakra_et.kerneltimes.kernel_times import KernelTimes, Provenance
from chakra_et.kerneltimes.samples import Samples, samples_of

__all__ = [
    "FEATURES",
    "Calls",
    "Features",
    "KernelTimes",
    "Key",
    "Provenance",
    "Samples",
    "calls_of",
    "no_features",
    "samples_of",
]
