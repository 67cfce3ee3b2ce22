"""Keyed pseudonyms, and the families that names belong to."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Final

import numpy as np

from chakra_et.definitions import NodeType

_FAMILIES: Final = (
    ("attention", r"attention|flash|sdpa"),
    ("convolution", r"conv|winograd|wgrad|dgrad"),
    ("matmul", r"gemm|matmul|::(mm|bmm|addmm|baddbmm|mv|addmv|linear)\b|cutlass|nvjet|cijk|mma|"
     r"\.(qkv|projection|up|down|gate|head)\b"),
    ("embedding", r"embedding|index_select|gather|scatter"),
    ("normalize", r"norm"),
    ("softmax", r"softmax|cross_entropy|nll_loss"),
    ("reduce", r"reduce|::(sum|mean|max|min|argmax|prod)\b"),
    ("copy", r"copy|memcpy|memset|::(to|clone|contiguous|cat|stack|fill_|zero_|zeros|empty\w*)\b"),
    ("view", r"::(view|reshape|t|transpose|permute|as_strided|slice|select|expand|unsqueeze|"
     r"detach)\b"),
    ("optimizer", r"adam|sgd|optimizer"),
    ("launch", r"^(cuda|hip|cu|zeEvent|acl)\w*(launch|graph)"),
    ("sync", r"^(cuda|hip|cu|acl)\w*(synchronize|event|wait)"),
    ("call", r"^(cuda|hip|cu|acl)[A-Z]\w+$"),
    ("elementwise", r"elementwise|::(add|sub|mul|div|relu|gelu|silu|exp|sqrt|tanh|sigmoid)_?\b"),
)  # fmt: skip
_PATTERNS: Final = [(family, re.compile(pattern, re.IGNORECASE)) for family, pattern in _FAMILIES]
FAMILIES: Final = (*dict(_FAMILIES), "operation", "communication", "memory")
PSEUDONYM: Final = re.compile(rf"({'|'.join(FAMILIES)})_[0-9a-f]{{8}}|group_[0-9a-f]{{8}}")
"""What all pseudonyms look like."""

_ATEN: Final = """
mm bmm addmm baddbmm matmul linear t transpose permute view reshape as_strided slice select expand
unsqueeze squeeze detach detach_ cat stack copy_ to _to_copy clone contiguous empty empty_like
empty_strided zeros zeros_like ones ones_like fill_ zero_ add add_ sub sub_ mul mul_ div div_ sum
mean sqrt rsqrt pow exp log neg relu relu_ gelu silu sigmoid tanh softmax _softmax log_softmax
_log_softmax dropout native_dropout layer_norm native_layer_norm batch_norm native_batch_norm
cudnn_batch_norm conv2d convolution _convolution cudnn_convolution convolution_backward max_pool2d
embedding embedding_dense_backward embedding_bag index_select index scaled_dot_product_attention
_scaled_dot_product_flash_attention _scaled_dot_product_efficient_attention cross_entropy_loss
nll_loss nll_loss_forward nll_loss_backward threshold_backward gelu_backward
native_layer_norm_backward _softmax_backward_data resolve_conj resolve_neg item
_local_scalar_dense chunk split unbind flatten addcmul_ addcdiv_ lerp_ _foreach_add_
_foreach_mul_ _foreach_addcmul_ _foreach_addcdiv_ _foreach_sqrt _foreach_div_ arange tril triu
masked_fill where max argmax topk
"""
_RUNTIMES: Final = """
cudaLaunchKernel cudaLaunchKernelExC cudaMemcpyAsync cudaMemsetAsync cudaStreamSynchronize
cudaDeviceSynchronize cudaEventRecord cudaEventQuery cudaEventSynchronize cudaStreamWaitEvent
cudaGraphLaunch cudaMalloc cudaFree hipLaunchKernel hipMemcpyAsync hipGraphLaunch
hipStreamSynchronize hipDeviceSynchronize gloo:all_reduce gloo:all_gather gloo:broadcast
gloo:reduce_scatter gloo:send gloo:recv nccl:all_reduce nccl:all_gather nccl:reduce_scatter
nccl:broadcast nccl:all_to_all nccl:send nccl:recv record_param_comms
"""
PUBLIC: Final = frozenset([*(f"aten::{name}" for name in _ATEN.split()), *_RUNTIMES.split()])
"""Names that say nothing but which function of PyTorch or of a runtime was called."""


class Pseudonyms:
    """Pseudonyms under one secret: equal texts of a class get equal ones, on all ranks."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def of(self, kind: str, text: str) -> str:
        """The pseudonym of a text of a class, such as `matmul_3f09a1c2`."""
        return f"{kind}_{self.digest(kind, text).hex()[:8]}"

    def digest(self, kind: str, text: str) -> bytes:
        """32 bytes that only the secret tells."""
        said = f"{kind}\0{text}".encode("utf-8", "surrogatepass")
        return hmac.new(self._secret, said, hashlib.sha256).digest()

    def random(self, kind: str, text: str) -> np.random.Generator:
        """Random numbers that only the secret tells."""
        return np.random.default_rng(int.from_bytes(self.digest(kind, text)[:16], "big"))


def family(name: str, node_type: int) -> str:
    """The family of a node: one of `FAMILIES`."""
    if node_type in (NodeType.COMM_COLL, NodeType.COMM_SEND, NodeType.COMM_RECV):
        return "communication"
    if node_type in (NodeType.MEM_LOAD, NodeType.MEM_STORE):
        return "memory"
    return next((kind for kind, pattern in _PATTERNS if pattern.search(name)), "operation")
