"""What simulators say of traces, beside what was recorded.

>>> from chakra_et.simulation import compare, read_astra_log
>>> compare(chakra_et.read_set("fed/"), read_astra_log("log/log.log")).ranks[0].ratio
"""

from chakra_et.simulation.astra_log import AstraLog, SimulatedNodes, read_astra_log
from chakra_et.simulation.compare import CallComparison, Comparison, RankComparison, compare

__all__ = [
    "AstraLog",
    "CallComparison",
    "Comparison",
    "RankComparison",
    "SimulatedNodes",
    "compare",
    "read_astra_log",
]
