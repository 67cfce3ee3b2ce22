"""What a made-up training run is made of: the kernels it runs and the schemas of its ops."""

from __future__ import annotations

from typing import NamedTuple


class Kernel(NamedTuple):
    name: str
    regs: int
    smem: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    ns: int


def _elementwise(functor: str, arity: int, ns: int, blocks: int = 4096) -> Kernel:
    array = f"std::array<char*, {arity}ul>"
    name = (
        f"void at::native::vectorized_elementwise_kernel<4, {functor}, {array} >"
        f"(int, {functor}, {array})"
    )
    return Kernel(name, 32, 0, (blocks, 1, 1), (128, 1, 1), ns)


def _lambda(impl: str, dtype: str) -> str:
    inner = "operator()() const::{lambda()#4}::operator()() const"
    return f"at::native::{impl}::{{lambda()#2}}::{inner}::{{lambda({dtype})#1}}"


def gemm(shape: str, tile: str, grid: int, ns: int) -> Kernel:
    name = (
        f"sm90_xmma_gemm_bf16bf16_bf16f32_f32_{shape}_n_tilesize{tile}"
        "_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
    )
    return Kernel(name, 168, 213248, (grid, 1, 1), (384, 1, 1), ns)


def _foreach(functor: str, depth: int, ns: int) -> Kernel:
    prefix = "at::native::(anonymous namespace)::"
    meta = f"{prefix}TensorListMetadata<{depth}>"
    return Kernel(
        f"void {prefix}multi_tensor_apply_kernel<{meta}, {prefix}{functor} >"
        f"({meta}, {prefix}{functor})",
        40,
        0,
        (320, 1, 1),
        (512, 1, 1),
        ns,
    )


def _flash_traits(direction: str, tile: str) -> str:
    return (
        f"pytorch_flash::Flash_{direction}_kernel_traits<64, {tile}, false, false, "
        "cutlass::bfloat16_t, pytorch_flash::Flash_kernel_traits<64, "
        f"{tile.rsplit(', ', 1)[0]}, 4, cutlass::bfloat16_t> >"
    )


_INDEX = "at::cuda::detail::TensorInfo<{} unsigned int>"
_FWD, _BWD = _flash_traits("fwd", "128, 128, 4"), _flash_traits("bwd", "128, 128, 8, 4, 4, 4")
_ADD = "at::native::CUDAFunctor_add<c10::BFloat16>"
_MUL = (
    "at::native::AUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
    "at::native::binary_internal::MulFunctor<float> >"
)
_SUM = (
    "at::native::ReduceOp<c10::BFloat16, at::native::func_wrapper_t<c10::BFloat16, "
    "at::native::sum_functor<c10::BFloat16, float, c10::BFloat16>::operator()"
    "(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, c10::BFloat16, 4, 4>"
)
_SOFTMAX = (
    "at::native::(anonymous namespace)::LogSoftMax{}Epilogue, false, false>(float*, "
    "float const*, int)"
)
K_ADD = _elementwise(_ADD, 3, 11_200)
K_MUL = _elementwise(_MUL, 2, 5_100, 1024)
K_GELU = _elementwise(
    _lambda("GeluCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)", "c10::BFloat16"),
    2,
    21_500,
    8192,
)
K_GELU_BACK = _elementwise(
    _lambda("GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)", "c10"),
    3,
    30_900,
    8192,
)
K_FILL = _elementwise("at::native::FillFunctor<float>", 1, 1_200, 1)
K_COPY = _elementwise(
    _lambda("direct_copy_kernel_cuda(at::TensorIteratorBase&)", "c10::BFloat16"), 2, 13_800
)
K_DROP = Kernel(
    "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<c10::BFloat16, float, "
    f"unsigned int, 1, 4, bool>({_INDEX.format('c10::BFloat16 const,')}, "
    f"{_INDEX.format('c10::BFloat16,')}, {_INDEX.format('bool,')}, unsigned int, float, "
    "at::PhiloxCudaState)",
    38,
    0,
    (1056, 1, 1),
    (256, 1, 1),
    14_400,
)
K_DROP_BACK = _elementwise("at::native::masked_scale_kernel<bool, c10::BFloat16, float>", 3, 12_700)
K_NORM = Kernel(
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>"
    "(int, float, c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, "
    "float*, c10::BFloat16*)",
    40,
    24,
    (4096, 1, 1),
    (32, 4, 1),
    9_300,
)
K_NORM_BACK = Kernel(
    "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized"
    "<c10::BFloat16, float>(c10::BFloat16 const*, c10::BFloat16 const*, float const*, "
    "float const*, c10::BFloat16 const*, c10::BFloat16*, int)",
    40,
    64,
    (4096, 1, 1),
    (256, 1, 1),
    15_900,
)
K_NORM_WEIGHT = Kernel(
    "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<c10::BFloat16, "
    "float, 32u, 32u, 256u, true, true, false>(long, long, c10::BFloat16 const*, "
    "c10::BFloat16 const*, float const*, float const*, c10::BFloat16*, c10::BFloat16*)",
    59,
    8448,
    (32, 16, 1),
    (32, 32, 1),
    12_100,
)
K_FLASH = Kernel(
    f"void pytorch_flash::flash_fwd_kernel<{_FWD}, false, true, false, false, true, true, false, "
    "false>(pytorch_flash::Flash_fwd_params)",
    255,
    49152,
    (4, 8, 16),
    (128, 1, 1),
    31_700,
)
K_FLASH_DOT = Kernel(
    f"void pytorch_flash::flash_bwd_dot_do_o_kernel<true, {_BWD}>(pytorch_flash::Flash_bwd_params)",
    96,
    0,
    (4, 8, 16),
    (256, 1, 1),
    8_800,
)
K_FLASH_BACK = Kernel(
    f"void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<{_BWD}, false, true, false, "
    "false, true, true, false>(pytorch_flash::Flash_bwd_params)",
    255,
    147456,
    (4, 8, 16),
    (256, 1, 1),
    104_000,
)
K_FLASH_CONVERT = Kernel(
    f"void pytorch_flash::flash_bwd_convert_dq_kernel<{_BWD}>"
    "(pytorch_flash::Flash_bwd_params, int)",
    80,
    16384,
    (4, 8, 16),
    (256, 1, 1),
    7_400,
)
K_SUM = Kernel(
    f"void at::native::reduce_kernel<128, 4, {_SUM} >({_SUM})",
    32,
    4096,
    (8, 16, 1),
    (32, 16, 1),
    9_900,
)
K_SPLIT_K = Kernel(
    "void splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true, "
    "false, false>(cublasSplitKParams<float>, float const*, __nv_bfloat16 const*, "
    "__nv_bfloat16*, float const*, float const*, __nv_bfloat16 const*, float const*, "
    "__nv_bfloat16*, void*, long, float*, int*)",
    32,
    0,
    (256, 16, 1),
    (32, 16, 1),
    6_600,
)
K_CAT = Kernel(
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy_alignedK_contig<at::native::"
    "(anonymous namespace)::OpaqueType<2u>, unsigned int, 4, 64, 64, 16>(at::native::(anonymous "
    "namespace)::OpaqueType<2u>*, at::native::(anonymous namespace)::CatArrInputTensorMetadata"
    "<at::native::(anonymous namespace)::OpaqueType<2u>, unsigned int, 64, 64>, at::native::"
    "(anonymous namespace)::TensorSizeStride<unsigned int, 4u>, int, unsigned int)",
    32,
    0,
    (264, 3, 1),
    (256, 1, 1),
    16_300,
)
K_EMBED = Kernel(
    "void at::native::(anonymous namespace)::vectorized_gather_kernel<16, long>(char*, char*, "
    "long*, int, long, long, long, long, bool)",
    32,
    0,
    (4096, 1, 1),
    (128, 1, 1),
    10_400,
)
K_EMBED_BACK = Kernel(
    "void at::native::(anonymous namespace)::compute_grad_weight<c10::BFloat16, long>(long const*, "
    "c10::BFloat16 const*, long const*, long, long, long const*, long const*, float*, long)",
    30,
    0,
    (32, 64, 1),
    (32, 4, 1),
    61_000,
)
K_SORT = Kernel(
    "void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::DeviceRadixSort"
    "Policy<long, long, unsigned int>::Policy900, false, long, long, unsigned int, int, int, "
    "at_cuda_detail::cub::detail::identity_decomposer_t>(int*, int*, unsigned int*, unsigned int "
    "const*, long*, long const*, long*, long const*, unsigned int, int, int, "
    "at_cuda_detail::cub::detail::identity_decomposer_t)",
    56,
    30720,
    (2, 1, 1),
    (384, 1, 1),
    7_700,
)
K_SOFTMAX = Kernel(
    "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, "
    + _SOFTMAX.format("Forward"),
    32,
    128,
    (4096, 1, 1),
    (1024, 1, 1),
    412_000,
)
K_SOFTMAX_BACK = Kernel(
    "void at::native::(anonymous namespace)::cunn_SoftMaxBackward<4, float, float, float, "
    + _SOFTMAX.format("Backward"),
    32,
    128,
    (4096, 1, 1),
    (1024, 1, 1),
    655_000,
)
K_NLL = Kernel(
    "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, "
    "long>(float*, float*, float const*, long const*, float const*, bool, long, long, long, long)",
    22,
    2048,
    (1, 1, 1),
    (32, 1, 1),
    5_800,
)
K_NLL_BACK = Kernel(
    "void at::native::(anonymous namespace)::nll_loss_backward_reduce_cuda_kernel_2d<float, long>"
    "(float*, float const*, long const*, float const*, float const*, bool, int, int, long, long)",
    20,
    0,
    (1, 1, 1),
    (32, 1, 1),
    3_100,
)
K_REDUCE = Kernel(
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    96,
    82240,
    (24, 1, 1),
    (544, 1, 1),
    233_000,
)


def _scalars(functor: str, depth: int, operation: str, ns: int) -> Kernel:
    return _foreach(f"{functor}<c10::BFloat16, {depth}, {depth}, 0>, {operation}<float>", depth, ns)


_IN_PLACE = "(Tensor(a!)[] self"
_POINTWISE = "Tensor[] tensor1, Tensor[] tensor2, Scalar value=1) -> ()"
# name, rest of the schema, how many lists of tensors it takes, kernel
_FOREACH = (
    (
        "mul_",
        f".Scalar{_IN_PLACE}, Scalar scalar) -> ()",
        1,
        _scalars("BinaryOpScalarFunctor", 1, "std::multiplies", 21_000),
    ),
    (
        "lerp_",
        f".Scalar{_IN_PLACE}, Tensor[] tensors1, Scalar weight) -> ()",
        2,
        _scalars("TernaryOpScalarFunctor", 2, "at::native::LerpFunctor", 34_000),
    ),
    (
        "addcmul_",
        f".Scalar{_IN_PLACE}, {_POINTWISE}",
        3,
        _scalars("PointwiseOpScalarFunctor", 3, "std::multiplies", 39_000),
    ),
    (
        "sqrt",
        "(Tensor[] self) -> Tensor[]",
        1,
        _scalars("UnaryOpFunctor", 2, "at::native::Sqrt", 28_000),
    ),
    (
        "div_",
        f".Scalar{_IN_PLACE}, Scalar scalar) -> ()",
        1,
        _scalars("BinaryOpScalarFunctor", 1, "std::divides", 21_000),
    ),
    (
        "add_",
        f".Scalar{_IN_PLACE}, Scalar scalar) -> ()",
        1,
        _scalars("BinaryOpScalarFunctor", 1, "std::plus", 21_000),
    ),
    (
        "addcdiv_",
        f".Scalar{_IN_PLACE}, {_POINTWISE}",
        3,
        _scalars("PointwiseOpScalarFunctor", 3, "std::divides", 40_000),
    ),
)
FOREACH = tuple((f"aten::_foreach_{name}", lists, kernel) for name, _, lists, kernel in _FOREACH)

CBID = {
    "cudaLaunchKernel": 211,
    "cudaLaunchKernelExC": 430,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaStreamSynchronize": 131,
    "cudaEventRecord": 135,
    "cudaEventQuery": 138,
    "cudaStreamWaitEvent": 147,
    "cudaDeviceGetAttribute": 200,
    "cudaFuncSetAttribute": 273,
    "cudaStreamIsCapturing": 317,
    "cudaStreamGetCaptureInfo_v2": 409,
}

_FACTORY = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
SCHEMA = {
    "aten::empty": f"aten::empty.memory_format(SymInt[] size, *, {_FACTORY}, "
    "MemoryFormat? memory_format=None) -> Tensor",
    "aten::empty_like": f"aten::empty_like(Tensor self, *, {_FACTORY}, "
    "MemoryFormat? memory_format=None) -> Tensor",
    "aten::empty_strided": f"aten::empty_strided(SymInt[] size, SymInt[] stride, *, {_FACTORY}) "
    "-> Tensor",
    "aten::zeros": f"aten::zeros(SymInt[] size, *, {_FACTORY}) -> Tensor",
    "aten::zero_": "aten::zero_(Tensor(a!) self) -> Tensor(a!)",
    "aten::ones_like": f"aten::ones_like(Tensor self, *, {_FACTORY}, "
    "MemoryFormat? memory_format=None) -> Tensor",
    "aten::fill_": "aten::fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    "aten::to": f"aten::to.dtype_layout(Tensor(a) self, *, {_FACTORY}, bool non_blocking=False, "
    "bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)",
    "aten::_to_copy": f"aten::_to_copy(Tensor self, *, {_FACTORY}, bool non_blocking=False, "
    "MemoryFormat? memory_format=None) -> Tensor",
    "aten::copy_": "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) "
    "-> Tensor(a!)",
    "aten::clone": "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    "aten::detach": "aten::detach(Tensor(a) self) -> Tensor(a)",
    "aten::view": "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
    "aten::reshape": "aten::reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)",
    "aten::_unsafe_view": "aten::_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
    "aten::t": "aten::t(Tensor(a) self) -> Tensor(a)",
    "aten::transpose": "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    "aten::permute": "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)",
    "aten::select": "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    "aten::unbind": "aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    "aten::as_strided": "aten::as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, "
    "SymInt? storage_offset=None) -> Tensor(a)",
    "aten::embedding": "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, "
    "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    "aten::index_select": "aten::index_select(Tensor self, int dim, Tensor index) -> Tensor",
    "aten::layer_norm": "aten::layer_norm(Tensor input, SymInt[] normalized_shape, "
    "Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, "
    "bool cudnn_enable=True) -> Tensor",
    "aten::native_layer_norm": "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, "
    "Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    "aten::native_layer_norm_backward": "aten::native_layer_norm_backward(Tensor grad_out, "
    "Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, "
    "Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    "aten::linear": "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    "aten::addmm": "aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, "
    "Scalar alpha=1) -> Tensor",
    "aten::mm": "aten::mm(Tensor self, Tensor mat2) -> Tensor",
    "aten::sum": "aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, "
    "ScalarType? dtype=None) -> Tensor",
    "aten::add": "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "aten::add_": "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) "
    "-> Tensor(a!)",
    "aten::mul": "aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    "aten::mul_": "aten::mul_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "aten::gelu": 'aten::gelu(Tensor self, *, str approximate=\\"none\\") -> Tensor',
    "aten::gelu_backward": "aten::gelu_backward(Tensor grad_output, Tensor self, *, "
    'str approximate=\\"none\\") -> Tensor',
    "aten::dropout": "aten::dropout(Tensor input, float p, bool train) -> Tensor",
    "aten::native_dropout": "aten::native_dropout(Tensor input, float p, bool? train) "
    "-> (Tensor, Tensor)",
    "aten::native_dropout_backward": "aten::native_dropout_backward(Tensor grad_output, "
    "Tensor mask, float scale) -> Tensor",
    "aten::scaled_dot_product_attention": "aten::scaled_dot_product_attention(Tensor query, "
    "Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., bool is_causal=False, "
    "*, float? scale=None, bool enable_gqa=False) -> Tensor",
    "aten::_scaled_dot_product_flash_attention": "aten::_scaled_dot_product_flash_attention("
    "Tensor query, Tensor key, Tensor value, float dropout_p=0., bool is_causal=False, bool "
    "return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor "
    "cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, "
    "Tensor debug_attn_mask)",
    "aten::_flash_attention_forward": "aten::_flash_attention_forward(Tensor query, Tensor key, "
    "Tensor value, Tensor? cum_seq_q, Tensor? cum_seq_k, SymInt max_q, SymInt max_k, float "
    "dropout_p, bool is_causal, bool return_debug_mask, *, float? scale=None, SymInt? "
    "window_size_left=None, SymInt? window_size_right=None, Tensor? seqused_k=None, Tensor? "
    "alibi_slopes=None) -> (Tensor output, Tensor softmax_logsumexp, Tensor rng_state, Tensor "
    "unused, Tensor debug_attn_mask)",
    "aten::_scaled_dot_product_flash_attention_backward": "aten::_scaled_dot_product_flash_"
    "attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, "
    "Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float "
    "dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None) "
    "-> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    "aten::_flash_attention_backward": "aten::_flash_attention_backward(Tensor grad_out, Tensor "
    "query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, Tensor cum_seq_q, Tensor "
    "cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, Tensor rng_state, "
    "Tensor unused, *, float? scale=None, SymInt? window_size_left=None, SymInt? "
    "window_size_right=None) -> (Tensor, Tensor, Tensor)",
    "aten::stack": "aten::stack(Tensor[] tensors, int dim=0) -> Tensor",
    "aten::cat": "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
    "aten::cross_entropy_loss": "aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? "
    "weight=None, int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.) -> Tensor",
    "aten::log_softmax": "aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) "
    "-> Tensor",
    "aten::_log_softmax": "aten::_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    "aten::_log_softmax_backward_data": "aten::_log_softmax_backward_data(Tensor grad_output, "
    "Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    "aten::nll_loss_nd": "aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, "
    "int reduction=1, SymInt ignore_index=-100) -> Tensor",
    "aten::nll_loss": "aten::nll_loss(Tensor self, Tensor target, Tensor? weight=None, "
    "int reduction=1, SymInt ignore_index=-100) -> Tensor",
    "aten::nll_loss_forward": "aten::nll_loss_forward(Tensor self, Tensor target, Tensor? weight, "
    "int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)",
    "aten::nll_loss_backward": "aten::nll_loss_backward(Tensor grad_output, Tensor self, Tensor "
    "target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor",
    "aten::embedding_backward": "aten::embedding_backward(Tensor grad, Tensor indices, SymInt "
    "num_weights, SymInt padding_idx, bool scale_grad_by_freq, bool sparse) -> Tensor",
    "aten::embedding_dense_backward": "aten::embedding_dense_backward(Tensor grad_output, Tensor "
    "indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
    "aten::item": "aten::item(Tensor self) -> Scalar",
    "aten::_local_scalar_dense": "aten::_local_scalar_dense(Tensor self) -> Scalar",
    "c10d::allreduce_": "c10d::allreduce_(Tensor[] tensors, __torch__.torch.classes.c10d."
    "ProcessGroup process_group, __torch__.torch.classes.c10d.ReduceOp reduce_op, Tensor? "
    "sparse_indices, bool async_op=True, int timeout=-1) -> (Tensor[], __torch__.torch.classes."
    "c10d.Work)",
    **{f"aten::_foreach_{name}": f"aten::_foreach_{name}{rest}" for name, rest, _, _ in _FOREACH},
}
