"""What names of collectives, kernels and data types mean: data for every library and era."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from chakra_et.definitions import CollectiveType, NodeType
from chakra_et.patterns import lazy_pattern

SEND: Final = NodeType.COMM_SEND
RECV: Final = NodeType.COMM_RECV

RECORD: Final = "record_param_comms"
"""How PyTorch calls its record of a collective or a message."""

STEP: Final = lazy_pattern(r"ProfilerStep#(\d{1,18})")
"""How PyTorch's profiler calls a step, and its number."""

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
    "receive": RECV,
}
"""Collective names with everything but letters removed, in lower case."""

_FORMS: Final = (
    "v", "base", "single", "coalesced", "sparse", "tensor", "intotensor", "out", "oop", "inplace",
    "outplace", "anysource", "reg", "unreg",
)  # fmt: skip
"""What is done with which tensors, behind the name of a collective: `all_to_all_v_single`."""

_NAMED: Final = lazy_pattern(f"(?P<name>{'|'.join(OPERATIONS)})(?:{'|'.join(_FORMS)})*")

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

ANNOTATION: Final = lazy_pattern(
    r"^(gloo|nccl|rccl|xccl|hccl|ucc|mpi|_?c10d(?:_functional(?:_autograd)?)?)::?(?P<name>\w+)"
)
"""How a process group, or the framework, names one operation: `gloo:all_reduce`."""

DEVICE_RANGE: Final = lazy_pattern(r"^(nccl|rccl|xccl|hccl|ucc)::?\w")
"""How a process group that communicates on the device names what it launches."""

MESSAGE_RANGE: Final = lazy_pattern(r"^\w+:(?:send|recv) \d+(?:->|<-)(?P<peer>\d{1,9})\b")
"""How a range names the places of both sides in their group: `nccl:recv 0<-1`."""

HOST_BACKENDS: Final = ("gloo:", "mpi:", "ucc:")
"""Process groups that communicate on the host, so that the span is the operation itself."""

_FRAMEWORK: Final = lazy_pattern(r"_?c10d\w*|\w*ccl|gloo|mpi|ucc")
"""Namespaces of the framework's groups, and of their backends."""

COMMUNICATION: Final = lazy_pattern(
    r"record_param_comms$|(?:gloo|nccl|rccl|xccl|hccl|ucc|mpi):|_?c10d\w*::?"
    r"|[^:]+::\w*(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)"
)
"""How names of operations begin whose arguments tell of communication."""

REQUEST: Final = "c10d::"
"""How names of operations begin that hand communication to a backend, and return at once."""

FUNCTIONAL: Final = "_c10d_functional"
"""How names of operations begin that name their process group, as their last argument."""

MESSAGES: Final = frozenset({"c10d::send", "c10d::recv_", "c10d::recv_any_source_"})
"""Operations that send or receive one message."""

KERNEL: Final = lazy_pattern(r"(?:void )?(?:nccl|rccl|hccl|msccl)\w*Kernel|hcom_\w", re.IGNORECASE)
"""How names of communication kernels begin; HCCL calls its tasks `hcom_allReduce__520_0_1`."""

_COLLECTIVE: Final = r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all"
SUSPECT: Final = lazy_pattern(
    rf"^(?!triton_).*?(?:cross_?device_?reduce|{_COLLECTIVE}|(?:internode|intranode)::|multimem_"
    r"|nvshmem|symm_mem|deep_?ep|quick_?reduce|userbuffers_)",
    re.IGNORECASE,
)
"""Kernels that communicate by themselves, by parts of their names. A compiler names kernels after
all that they are fused of, what they only prepare or unpack, too."""

COLLECTIVE_OPERATION: Final = lazy_pattern(
    rf"^[^:#]+::(?!\w*(?:matmul|gemm|mm_))\w*?(?P<name>{_COLLECTIVE})"
)
"""Operations of any library that are a collective: `vllm::all_reduce`. Those that also multiply are
not: their inputs are not what they send."""

KERNEL_OPERATION: Final = lazy_pattern(
    r"^hcom_(?P<task>allReduce|reduceScatter|reduce|allGather|broadcast|alltoall|send|receive)"
    r"|AllReduce|ReduceScatter|Reduce|AllGatherV?|Broadcast|All[Tt]oAll"
)
"""What a communication kernel does, where its name tells; SendRecv and Generic do not."""

KERNEL_DTYPE: Final = lazy_pattern(
    r"(?:AllReduce|ReduceScatter|Reduce)_(?:[A-Z0-9]+_)*"
    r"(?:Sum|Prod|Min|Max|MinMax|Avg|PreMulSum|SumPostDiv)_+(?:nv_|hip_|rccl_)?"
    r"(?P<dtype>[a-z][a-z0-9]*)"
)
"""The type of the elements that a kernel reduces; kernels that only move data work on bytes."""

KERNEL_RANKS: Final = lazy_pattern(
    r"cross_device_reduce\w*<(?P<dtype>[^<>,]*),(?:[^<>]*,)?\s*(?P<ranks>[0-9]{1,3})\b"
)
"""The elements and how many ranks a kernel is made for: `cross_device_reduce_1stage<half, 2>`."""

_BITS_IN_NAME: Final = lazy_pattern(
    r"(?:torch\.|at::|c10::|_{0,2}(?:nv|hip|rccl)_|nccl|k)?"
    r"(?:q?u?int|bits|float|fp|bfloat|bfp?|complex|[fiu])(?P<bits>[0-9]{1,3})"
    r"(?:\w*?x(?P<packed>[0-9]{1,2})|\w*)"
)
"""Types that tell their width: `int64_t`, `c10::BFloat16`, `f8e4m3`, `Float4_e2m1fn_x2`."""
_WIDTHS: Final = (8, 16, 32, 64, 128)
_COMPLEX: Final = lazy_pattern(r"(?:c10::)?complex<?(?P<part>[^<>]+)>?")
_TENSOR: Final = lazy_pattern(r"tensor\((?P<dtype>[^()]*)\)")
_QUALIFIERS: Final = frozenset({"int", "signed", "unsigned"})
_NAMED_BYTES: Final[dict[str, int]] = {
    "bool": 1, "byte": 1, "char": 1, "short": 2, "": 4, "long": 8, "long long": 8,
    "half": 2, "float": 4, "double": 8,
}  # fmt: skip
"""Bytes of types that do not tell their width; of C++'s integers without `int` and the sign."""


@lru_cache(1 << 12)
def operation(name: str) -> CollectiveType | NodeType | None:
    """What a collective's name stands for; None if it is not communication or not known.

    Libraries name the forms of a collective in many ways (`_allgather_base`, `all_gather_single`,
    `allgather_into_tensor_coalesced`); what matters is the collective.
    """
    match = _NAMED.fullmatch(re.sub(r"[^a-z]", "", name.lower()))
    return OPERATIONS[match["name"]] if match else None


@lru_cache(1 << 12)
def is_suspect(name: str) -> bool:
    """Whether a kernel communicates by itself, as far as its name tells."""
    return SUSPECT.search(name) is not None


def is_collective_operation(name: str) -> bool:
    """Whether an operation of some library is a collective and nothing else: `vllm::all_reduce`.

    Those of the framework's groups hand over to a library, whose records and kernels tell more.
    Operations named like other collectives work on one device (`aten::gather`, `aten::scatter`).
    """
    space, _, own = name.partition("::")
    if not own or _FRAMEWORK.fullmatch(space) or not COLLECTIVE_OPERATION.match(name):
        return False
    return operation(own) is not None


def sized_by_first(kind: CollectiveType | NodeType | None) -> bool:
    """Whether the first tensors of an operation are input and output alike, as of all messages.

    Operations of the framework's groups of other kinds list the outputs before the inputs.
    """
    return isinstance(kind, NodeType) or kind in _IN_PLACE


@lru_cache(1 << 12)
def element_bytes(dtype: str) -> int | None:
    """The bytes of one element, by the names that profilers, host traces and kernels use.

    None for a type that is not known.
    """
    name = dtype.strip().lower()
    if match := _TENSOR.fullmatch(name):
        name = match["dtype"]
    if match := _BITS_IN_NAME.fullmatch(name):
        bits = int(match["bits"]) * int(match["packed"] or 1)
        return bits // 8 if bits in _WIDTHS else None
    if match := _COMPLEX.fullmatch(name):
        part = element_bytes(match["part"])
        return None if part is None else 2 * part
    words = (
        name.removeprefix("torch.").removeprefix("c10::").removeprefix("at::").strip("_").split()
    )
    plain = " ".join(word for word in words if word not in _QUALIFIERS)
    return _NAMED_BYTES.get(plain) if words else None
