"""What names of collectives, kernels and data types mean: data for every library and era."""

from __future__ import annotations

import re
from typing import Final

from chakra_et.definitions import CollectiveType, NodeType

SEND: Final = NodeType.COMM_SEND
RECV: Final = NodeType.COMM_RECV

NO_COMMUNICATION: Final = frozenset({"wait", "init", "start", "end", "coalesced"})
"""Names under which a library records that it waits or begins; nothing is sent."""

OPERATIONS: Final[dict[str, CollectiveType | NodeType]] = {
    "allreduce": CollectiveType.ALL_REDUCE,
    "allreducesparse": CollectiveType.ALL_REDUCE,
    "allreducecoalesced": CollectiveType.ALL_REDUCE,
    "reduce": CollectiveType.REDUCE,
    "reduceoop": CollectiveType.REDUCE,
    "allgather": CollectiveType.ALL_GATHER,
    "allgatherv": CollectiveType.ALL_GATHER,
    "allgatherbase": CollectiveType.ALL_GATHER,
    "allgathercoalesced": CollectiveType.ALL_GATHER,
    "allgatherintotensor": CollectiveType.ALL_GATHER,
    "allgatherintotensorcoalesced": CollectiveType.ALL_GATHER,
    "gather": CollectiveType.GATHER,
    "scatter": CollectiveType.SCATTER,
    "broadcast": CollectiveType.BROADCAST,
    "broadcastoop": CollectiveType.BROADCAST,
    "alltoall": CollectiveType.ALL_TO_ALL,
    "alltoallv": CollectiveType.ALL_TO_ALL,
    "alltoallbase": CollectiveType.ALL_TO_ALL,
    "alltoallsingle": CollectiveType.ALL_TO_ALL,
    "reducescatter": CollectiveType.REDUCE_SCATTER,
    "reducescatterv": CollectiveType.REDUCE_SCATTER,
    "reducescatterbase": CollectiveType.REDUCE_SCATTER,
    "reducescattertensor": CollectiveType.REDUCE_SCATTER,
    "reducescattertensorcoalesced": CollectiveType.REDUCE_SCATTER,
    "reducescatterblock": CollectiveType.REDUCE_SCATTER_BLOCK,
    "barrier": CollectiveType.BARRIER,
    "send": SEND,
    "recv": RECV,
    "recvanysource": RECV,
}
"""Collective names with everything but letters removed, in lower case."""

WITHOUT_ROOT: Final = frozenset(
    {
        CollectiveType.ALL_REDUCE,
        CollectiveType.ALL_GATHER,
        CollectiveType.ALL_TO_ALL,
        CollectiveType.REDUCE_SCATTER,
        CollectiveType.BARRIER,
    }
)
"""Collectives of which a record tells the caller's place in the group, not that of a root."""

ANNOTATION: Final = re.compile(r"^(gloo|nccl|rccl|xccl|hccl|ucc|mpi|c10d)::?(?P<name>\w+)")
"""How a process group, or the framework, names one operation: `gloo:all_reduce`."""

HOST_BACKENDS: Final = ("gloo:", "mpi:", "ucc:")
"""Process groups that communicate on the host, so that the span is the operation itself."""

ASKING: Final = "c10d::"
"""How names of operations begin that hand communication to a backend, and return at once."""

MESSAGES: Final = frozenset({"c10d::send", "c10d::recv_", "c10d::recv_any_source_"})
"""Operations that send or receive one message."""

KERNEL: Final = re.compile(r"(nccl|rccl|hccl)\w*Kernel", re.IGNORECASE)
"""How names of communication kernels begin."""

SUSPECT: Final = re.compile(
    r"cross_device_reduce|(?:internode|intranode)::|multimem_|nvshmem|symm_mem|deep_?ep",
    re.IGNORECASE,
)
"""Kernels that communicate by themselves, by parts of their names."""

KERNEL_OPERATION: Final = re.compile(
    r"AllReduce|ReduceScatter|Reduce|AllGatherV?|Broadcast|All[Tt]oAll"
)
"""What a communication kernel does, where its name tells; SendRecv and Generic do not."""

DTYPE_BYTES: Final[dict[str, int]] = {
    "bool": 1,
    "byte": 1,
    "char": 1,
    "short": 2,
    "int": 4,
    "long": 8,
    "half": 2,
    "float": 4,
    "double": 8,
    "bfloat16": 2,
    "complexhalf": 4,
    "complexfloat": 8,
    "complexdouble": 16,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "quint8": 1,
    "qint8": 1,
    "qint32": 4,
}
"""Bytes of one element, by the names that profilers and host traces use, in lower case."""


def operation(name: str) -> CollectiveType | NodeType | None:
    """What a collective's name stands for; None if it is not communication or not known."""
    return OPERATIONS.get(re.sub(r"[^a-z]", "", name.lower()))
