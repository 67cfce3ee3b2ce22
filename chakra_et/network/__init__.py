"""How long transfers take: a topology in a file, algorithms of collectives, measured tables.

>>> from chakra_et.definitions import CollectiveType
>>> from chakra_et.network import Network, load_topology
>>> network = Network(load_topology("dgx-a100"))
>>> network.transfer_ns(CollectiveType.ALL_REDUCE, 1 << 30, range(8)) // 1_000_000
8
"""

from chakra_et.network.algorithms import ALGORITHMS, Work, work_of
from chakra_et.network.measured import Measured
from chakra_et.network.model import Network
from chakra_et.network.sharing import fair_rates
from chakra_et.network.topology import Level, Topology, load_topology, topology_names

__all__ = [
    "ALGORITHMS",
    "Level",
    "Measured",
    "Network",
    "Topology",
    "Work",
    "fair_rates",
    "load_topology",
    "topology_names",
    "work_of",
]
