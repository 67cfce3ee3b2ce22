"""Describe a workload in Python, and get an execution trace for every rank.

>>> from chakra_et.build import Workload, write_workload
>>> def ring(rank):
...     done = None
...     for step in range(14):
...         rank.send(rank.peer(rank=1), 1 << 17, after=done)
...         done = rank.receive(rank.peer(rank=-1), 1 << 17, after=done)
>>> traces = Workload(rank=8).traces(ring)
>>> len(traces), len(traces[0].nodes)
(8, 28)
"""

from chakra_et.build.grid import Grid
from chakra_et.build.operation import DTYPES, Peer, Tensor
from chakra_et.build.output import Written, write_workload
from chakra_et.build.packed import PackedSet, write_packed
from chakra_et.build.places import BuildError
from chakra_et.build.rank import Rank
from chakra_et.build.workload import Program, Workload

__all__ = [
    "DTYPES",
    "BuildError",
    "Grid",
    "PackedSet",
    "Peer",
    "Program",
    "Rank",
    "Tensor",
    "Workload",
    "Written",
    "write_packed",
    "write_workload",
]
