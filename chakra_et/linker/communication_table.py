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
    "reducescatterblock": CollectiveType.REDUCE_SCATTER_BLOCK,
    "reducescatter": CollectiveType.REDUCE_SCATTER,
    "reduce": CollectiveType.REDUCE,
    "allgather": CollectiveType.ALL_GATHER,
    "gather": CollectiveType.GATHER,
    "scatter": CollectiveType.SCATTER,
    "broadcast": CollectiveType.BROADCAST,
    "alltoall": CollectiveType.ALL_TO_ALL,
    "barrier": CollectiveType.BARRIER,
    "send": SEND,
    "recv": RECV,
}
"""Collective names with everything but letters removed, in lower case."""

_FORMS: Final = (
    "v", "base", "single", "coalesced", "sparse", "tensor", "intotensor", "out", "oop", "inplace",
    "outplace", "anysource", "reg", "unreg",
)  # fmt: skip
"""What is done with which tensors, behind the name of a collective: `all_to_all_v_single`."""

_NAMED: Final = re.compile(f"(?P<name>{'|'.join(OPERATIONS)})(?:{'|'.join(_FORMS)})*")

_IN_PLACE: Final = frozenset(
    {CollectiveType.ALL_REDUCE, CollectiveType.REDUCE, CollectiveType.BROADCAST}
)

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

DEVICE_RANGE: Final = re.compile(r"^(nccl|rccl|xccl|hccl|ucc):\w")
"""How a process group that communicates on the device names what it launches."""

MESSAGE_RANGE: Final = re.compile(r"^\w+:(?:send|recv) \d+(?:->|<-)(?P<peer>\d{1,9})\b")
"""How a range names the places of both sides in their group: `nccl:recv 0<-1`."""

HOST_BACKENDS: Final = ("gloo:", "mpi:", "ucc:")
"""Process groups that communicate on the host, so that the span is the operation itself."""

REQUEST: Final = "c10d::"
"""How names of operations begin that hand communication to a backend, and return at once."""

MESSAGES: Final = frozenset({"c10d::send", "c10d::recv_", "c10d::recv_any_source_"})
"""Operations that send or receive one message."""

KERNEL: Final = re.compile(r"(nccl|rccl|hccl|msccl)\w*Kernel", re.IGNORECASE)
"""How names of communication kernels begin."""

_COLLECTIVE: Final = r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all"
SUSPECT: Final = re.compile(
    rf"^(?!triton_).*?(?:cross_?device_?reduce|{_COLLECTIVE}|(?:internode|intranode)::|multimem_"
    r"|nvshmem|symm_mem|deep_?ep|quick_?reduce|userbuffers_)",
    re.IGNORECASE,
)
"""Kernels that communicate by themselves, by parts of their names. A compiler names kernels after
all that they are fused of, what they only prepare or unpack, too."""

COLLECTIVE_OPERATION: Final = re.compile(
    rf"^[^:#]+::(?!\w*(?:matmul|gemm|mm_))\w*?(?P<name>{_COLLECTIVE})"
)
"""Operations of any library that are a collective: `vllm::all_reduce`. Those that also multiply are
not: their inputs are not what they send."""

KERNEL_OPERATION: Final = re.compile(
    r"AllReduce|ReduceScatter|Reduce|AllGatherV?|Broadcast|All[Tt]oAll"
)
"""What a communication kernel does, where its name tells; SendRecv and Generic do not."""

KERNEL_DTYPE: Final = re.compile(
    r"(?:AllReduce|ReduceScatter|Reduce)_(?:[A-Z0-9]+_)*"
    r"(?:Sum|Prod|Min|Max|MinMax|Avg|PreMulSum|SumPostDiv)_+(?:nv_|hip_|rccl_)?"
    r"(?P<dtype>[a-z][a-z0-9]*)"
)
"""The type of the elements that a kernel reduces; kernels that only move data work on bytes."""

KERNEL_RANKS: Final = re.compile(r"cross_device_reduce\w*<[^<>]*,\s*(?P<ranks>[0-9]{1,3})\b")
"""How many ranks a kernel is made for: `cross_device_reduce_1stage<__nv_bfloat16, 2>`."""

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
    "float4_e2m1fn_x2": 1,
    "long int": 8,
    "long long": 8,
    "short int": 2,
    "unsigned char": 1,
    "signed char": 1,
    "unsigned short": 2,
    "unsigned int": 4,
    "unsigned long": 8,
    "complex<half>": 4,
    "complex<float>": 8,
    "complex<double>": 16,
    "i8": 1,
    "u8": 1,
    "i32": 4,
    "u32": 4,
    "i64": 8,
    "u64": 8,
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
    "f8e4m3": 1,
    "f8e5m2": 1,
    "int8": 1,
    "int32": 4,
    "int64": 8,
    "uint8": 1,
}
"""Bytes of one element, by the names that profilers, host traces and kernels use, in lower case."""


def operation(name: str) -> CollectiveType | NodeType | None:
    """What a collective's name stands for; None if it is not communication or not known.

    Libraries name the forms of a collective in many ways (`_allgather_base`, `all_gather_single`,
    `allgather_into_tensor_coalesced`); what matters is the collective.
    """
    match = _NAMED.fullmatch(re.sub(r"[^a-z]", "", name.lower()))
    return OPERATIONS[match["name"]] if match else None


def sized_by_first(kind: CollectiveType | NodeType | None) -> bool:
    """Whether the first tensors of an operation are input and output alike, as of all messages.

    Operations of the framework's groups of other kinds list the outputs before the inputs.
    """
    return isinstance(kind, NodeType) or kind in _IN_PLACE


def element_bytes(dtype: str) -> int | None:
    """The bytes of one element; None for a type that is not known."""
    return DTYPE_BYTES.get(dtype.lower().removeprefix("c10::"))
