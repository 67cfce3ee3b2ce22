"""The training that the made-up run does: a transformer, op by op, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from . import catalog as k
from .run import GradNode, Op, Run
from .values import (
    BF16,
    BOOL,
    CUDA,
    F32,
    F64,
    I64,
    NONE,
    Arg,
    DType,
    Literal,
    Shape,
    Storage,
    Tensor,
    contiguous,
    lit,
)

BATCH, SEQ, DIM, HEADS, VOCAB = 8, 512, 1024, 16, 32000
TOKENS, HEAD_DIM, FF = BATCH * SEQ, DIM // HEADS, 4 * DIM
FOREACH_LAUNCHES = 3  # kernels of one fused optimizer op


def parameter(shape: Shape, dtype: DType = BF16) -> Tensor:
    """A tensor that outlives the step."""
    return Tensor(shape, contiguous(shape), dtype, Storage(max(512, _numel(shape) * dtype.size)))


def _numel(shape: Shape) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


class Linear:
    def __init__(self, inputs: int, outputs: int, forward: k.Kernel, backward: k.Kernel) -> None:
        self.weight = parameter((outputs, inputs))
        self.bias = parameter((outputs,))
        self.inputs, self.outputs = inputs, outputs
        self.forward, self.backward = forward, backward


class Norm:
    def __init__(self) -> None:
        self.weight, self.bias = parameter((DIM,)), parameter((DIM,))


class Layer:
    def __init__(self) -> None:
        self.norm1, self.norm2 = Norm(), Norm()
        self.qkv = Linear(DIM, 3 * DIM, k.gemm("tn", "128x256x64", 132, 44_100), GEMM_QKV)
        self.out = Linear(DIM, DIM, k.gemm("tn", "128x128x64", 128, 17_300), GEMM_OUT)
        self.up = Linear(DIM, FF, k.gemm("tn", "128x256x64", 132, 57_900), GEMM_MLP)
        self.down = Linear(FF, DIM, k.gemm("tn", "256x128x64", 128, 60_400), GEMM_MLP)
        self.bucket = parameter((12 * DIM * DIM + 13 * DIM,))
        self.parameters = [
            tensor
            for module in (self.norm1, self.qkv, self.out, self.norm2, self.up, self.down)
            for tensor in (module.weight, module.bias)
        ]
        self.moments = [[parameter(t.shape) for t in self.parameters] for _ in range(2)]
        self.grads = [parameter(t.shape) for t in self.parameters]


GEMM_QKV = k.gemm("nn", "128x256x64", 132, 43_500)
GEMM_OUT = k.gemm("nn", "128x128x64", 128, 18_900)
GEMM_MLP = k.gemm("nt", "256x128x64", 132, 61_200)
GEMM_HEAD = k.gemm("tn", "128x256x64", 132, 489_000)

Backward = Callable[[Tensor], Tensor]  # the gradient of the output to that of the input


class Training:
    """The training loop, op by op."""

    def __init__(self, run: Run, layers: int) -> None:
        self.run = run
        self.embedding = parameter((VOCAB, DIM))
        self.head = parameter((VOCAB, DIM))
        self.norm = Norm()
        self.layers = [Layer() for _ in range(layers)]
        self.scale = parameter((), F64)
        self.scale.device = "cpu"
        self.mean = parameter((), BF16)
        self.host_tokens = parameter((BATCH, SEQ), I64)
        self.host_tokens.device = "cpu"

    # -- small ops -------------------------------------------------------------------------------

    def empty(self, shape: Shape, dtype: DType = BF16) -> Tensor:
        made = self.run.tensor(shape, dtype)
        size = lit(shape)
        self.run.leaf("aten::empty", (size, lit(15), lit(0), CUDA, NONE, NONE), made)
        return made

    def empty_like(self, like: Tensor) -> Tensor:
        made = self.run.tensor(like.shape, like.dtype)
        with self.run.op("aten::empty_like", (like, NONE, NONE, NONE, NONE, NONE)) as op:
            strides = lit(contiguous(like.shape))
            args = (lit(like.shape), strides, lit(15), lit(0), CUDA, NONE)
            self.run.leaf("aten::empty_strided", args, made)
            op.result = [made]
        return made

    def as_strided(self, base: Tensor, shape: Shape, strides: Shape) -> Tensor:
        made = self.run.alias(base, shape, strides)
        self.run.leaf("aten::as_strided", (base, lit(shape), lit(strides), NONE), made)
        return made

    def view(self, base: Tensor, shape: Shape) -> Tensor:
        made = self.run.alias(base, shape)
        self.run.leaf("aten::view", (base, lit(shape)), made)
        return made

    def reshape(self, base: Tensor, shape: Shape) -> Tensor:
        with self.run.op("aten::reshape", (base, lit(shape))) as op:
            made = self.view(base, shape)
            op.result = [made]
        return made

    def transpose(self, base: Tensor, first: int, second: int) -> Tensor:
        shape, strides = list(base.shape), list(base.strides)
        shape[first], shape[second] = shape[second], shape[first]
        strides[first], strides[second] = strides[second], strides[first]
        with self.run.op("aten::transpose", (base, lit(first), lit(second))) as op:
            made = self.as_strided(base, tuple(shape), tuple(strides))
            op.result = [made]
        return made

    def t(self, base: Tensor) -> Tensor:
        with self.run.op("aten::t", (base,)) as op:
            made = self.transpose(base, 0, 1)
            op.result = [made]
        return made

    def mm(self, left: Tensor, right: Tensor, *kernels: k.Kernel) -> Tensor:
        with self.run.op("aten::mm", (left, right)) as op:
            made = self.run.tensor((left.shape[0], right.shape[1]))
            for kernel in kernels:
                self.run.kernel(kernel)
            op.result = [made]
        return made

    def add_(self, into: Tensor, other: Tensor) -> None:
        with self.run.op("aten::add_", (into, other, lit(1))) as op:
            self.run.kernel(k.K_ADD)
            op.result = [into]

    # -- autograd --------------------------------------------------------------------------------

    @contextmanager
    def differentiable(self, name: str, args: tuple[Arg, ...]) -> Iterator[tuple[Op, GradNode]]:
        """A forward op that makes one node of the backward graph."""
        op = self.run.enter(name, args, differentiable=True)
        yield op, self.run.grad_node(op)
        self.run.leave(op)

    def accumulate(self, parameter: Tensor, grad: Tensor, layer: Layer | None) -> None:
        """AccumulateGrad, and the hook of DistributedDataParallel behind it."""
        name = "torch::autograd::AccumulateGrad"
        with self.run.evaluate(name, None, (grad,)):
            self.run.leaf("aten::detach", (grad,), self.run.alias(grad, grad.shape))
            if layer is not None:
                slot = self.view(layer.bucket, (_numel(layer.bucket.shape),))
                part = self.as_strided(slot, grad.shape, contiguous(grad.shape))
                with self.run.op("aten::mul", (grad, self.scale, part)) as op:
                    self.run.kernel(k.K_MUL)
                    op.result = [part]
                if parameter is layer.parameters[0]:  # the last to come: the bucket is full
                    self.run.all_reduce(layer.bucket)

    # -- forward, each with its backward ---------------------------------------------------------

    def viewed(self, base: Tensor, shape: Shape) -> tuple[Tensor, Backward]:
        made = self.run.alias(base, shape)
        with self.differentiable("aten::view", (base, lit(shape))) as (op, node):
            op.result = [made]

        def backward(grad: Tensor) -> Tensor:
            with self.run.evaluate("ViewBackward0", node, (grad,)):
                return self.reshape(grad, base.shape)

        return made, backward

    def normed(self, norm: Norm, x: Tensor, layer: Layer | None) -> tuple[Tensor, Backward]:
        run = self.run
        size, eps = lit((DIM,)), lit(1e-05)
        with run.op(
            "aten::layer_norm", (x, size, norm.weight, norm.bias, eps, lit(True)), grad=True
        ) as outer:
            args = (x, size, norm.weight, norm.bias, eps)
            with self.differentiable("aten::native_layer_norm", args) as (op, node):
                y = self.empty(x.shape)
                mean, rstd = (
                    self.empty((*x.shape[:-1], 1), F32),
                    self.empty((*x.shape[:-1], 1), F32),
                )
                run.kernel(k.K_NORM)
                op.result = [y, mean, rstd]
            outer.result = [y]

        def backward(grad: Tensor) -> Tensor:
            with run.evaluate("NativeLayerNormBackward0", node, (grad,)):
                args = (grad, x, size, mean, rstd, norm.weight, norm.bias, lit((True, True, True)))
                with run.op("aten::native_layer_norm_backward", args) as op:
                    dx, dw, db = self.empty(x.shape), self.empty((DIM,)), self.empty((DIM,))
                    run.kernel(k.K_NORM_BACK)
                    run.kernel(k.K_NORM_WEIGHT)
                    op.result = [dx, dw, db]
            self.accumulate(norm.bias, db, layer)
            self.accumulate(norm.weight, dw, layer)
            return dx

        return y, backward

    def linear(self, module: Linear, x: Tensor, layer: Layer) -> tuple[Tensor, Backward]:
        run = self.run
        with run.op("aten::linear", (x, module.weight, module.bias), grad=True) as outer:
            flat, unflatten = self.viewed(x, (TOKENS, module.inputs))
            with self.differentiable("aten::t", (module.weight,)) as (op, turned):
                weight = self.transpose(module.weight, 0, 1)
                op.result = [weight]
            args = (module.bias, flat, weight, lit(1), lit(1))
            with self.differentiable("aten::addmm", args) as (op, node):
                product = run.tensor((TOKENS, module.outputs))
                run.kernel(module.forward)
                op.result = [product]
            y, flatten = self.viewed(product, (BATCH, SEQ, module.outputs))
            outer.result = [y]

        def backward(grad: Tensor) -> Tensor:
            grad = flatten(grad)
            with run.evaluate("AddmmBackward0", node, (grad,)):
                dx = self.mm(grad, self.t(weight), module.backward)
                dw = self.mm(self.t(flat), grad, module.backward, k.K_SPLIT_K)
                turned_dw = self.t(dw)
                with run.op("aten::sum", (grad, lit((0,)), lit(True), NONE)) as op:
                    db = run.tensor((1, module.outputs))
                    run.kernel(k.K_SUM)
                    op.result = [db]
                db = self.view(db, (module.outputs,))
            self.accumulate(module.bias, db, layer)
            with run.evaluate("TBackward0", turned, (turned_dw,)):
                dw = self.t(turned_dw)
            self.accumulate(module.weight, dw, layer)
            return unflatten(dx)

        return y, backward

    def elementwise(
        self, name: str, args: tuple[Literal, ...], x: Tensor, forward: k.Kernel, backward: k.Kernel
    ) -> tuple[Tensor, Backward]:
        """GELU and what is like it: one op and one kernel each way."""
        run = self.run
        y = run.tensor(x.shape)
        with self.differentiable(f"aten::{name}", (x, *args)) as (op, node):
            run.kernel(forward)
            op.result = [y]

        def backprop(grad: Tensor) -> Tensor:
            with run.evaluate(f"{name.title()}Backward0", node, (grad,)):
                dx = run.tensor(x.shape)
                with run.op(f"aten::{name}_backward", (grad, x, *args)) as op:
                    run.kernel(backward)
                    op.result = [dx]
            return dx

        return y, backprop

    def dropout(self, x: Tensor) -> tuple[Tensor, Backward]:
        run = self.run
        args = (x, lit(0.1), lit(True))
        with run.op("aten::dropout", args, grad=True) as outer:
            with self.differentiable("aten::native_dropout", args) as (op, node):
                y, mask = self.empty_like(x), self.empty(x.shape, BOOL)
                run.kernel(k.K_DROP)
                op.result = [y, mask]
            outer.result = [y]

        def backward(grad: Tensor) -> Tensor:
            with run.evaluate("NativeDropoutBackward0", node, (grad,)):
                dx = run.tensor(x.shape)
                args = (grad, mask, lit(1.11111))
                with run.op("aten::native_dropout_backward", args) as op:
                    run.kernel(k.K_DROP_BACK)
                    op.result = [dx]
            return dx

        return y, backward

    def add(self, x: Tensor, y: Tensor) -> tuple[Tensor, GradNode]:
        made = self.run.tensor(x.shape)
        with self.differentiable("aten::add", (x, y, lit(1))) as (op, node):
            self.run.kernel(k.K_ADD)
            op.result = [made]
        return made, node

    def attention(self, qkv: Tensor) -> tuple[Tensor, Backward]:
        run = self.run
        heads, unview = self.viewed(qkv, (BATCH, SEQ, 3, HEADS, HEAD_DIM))
        order = (2, 0, 3, 1, 4)
        shape = tuple(heads.shape[i] for i in order)
        strides = tuple(heads.strides[i] for i in order)
        with self.differentiable("aten::permute", (heads, lit(order))) as (op, permuted):
            turned = self.as_strided(heads, shape, strides)
            op.result = [turned]
        with self.differentiable("aten::unbind", (turned, lit(0))) as (op, unbound):
            parts: list[Tensor] = []
            for i in range(3):
                with run.op("aten::select", (turned, lit(0), lit(i))) as selected:
                    part = self.as_strided(turned, shape[1:], strides[1:])
                    selected.result = [part]
                parts.append(part)
            op.result = [parts]
        q, key, v = parts
        tail = (lit(0.0), lit(True))
        args: tuple[Arg, ...] = (q, key, v, NONE, *tail, NONE, lit(False))
        with run.op("aten::scaled_dot_product_attention", args, grad=True) as outer:
            name = "aten::_scaled_dot_product_flash_attention"
            with self.differentiable(name, (q, key, v, *tail, lit(False), NONE)) as (op, node):
                swapped = [self.transpose(x, 1, 2) for x in parts]
                sizes = (lit(SEQ), lit(SEQ))
                args = (*swapped, NONE, NONE, *sizes, *tail, lit(False), *[NONE] * 5)
                with run.op("aten::_flash_attention_forward", args) as inner:
                    raw = self.empty_like(swapped[0])
                    lse = self.empty((BATCH, HEADS, SEQ), F32)
                    state = self.empty((2,), I64)
                    run.call("cudaFuncSetAttribute")
                    run.kernel(k.K_FLASH)
                    inner.result = [raw, lse, state]
                out = self.transpose(raw, 1, 2)
                op.result = [out, lse, state]
            outer.result = [out]
        with self.differentiable("aten::transpose", (out, lit(1), lit(2))) as (op, swapped_back):
            rows = self.as_strided(out, raw.shape, raw.strides)
            op.result = [rows]
        y, unrow = self.viewed(rows, (BATCH, SEQ, DIM))

        def backward(grad: Tensor) -> Tensor:
            grad = unrow(grad)
            with run.evaluate("TransposeBackward0", swapped_back, (grad,)):
                grad = self.transpose(grad, 1, 2)
            with run.evaluate("ScaledDotProductFlashAttentionBackward0", node, (grad,)):
                name = "aten::_scaled_dot_product_flash_attention_backward"
                sizes = (lit(SEQ), lit(SEQ))
                rest: tuple[Arg, ...] = (out, lse, NONE, NONE, *sizes, *tail, state, state)
                with run.op(name, (grad, q, key, v, *rest, NONE)) as op:
                    turned = [self.transpose(x, 1, 2) for x in (grad, q, key, v, out)]
                    args: tuple[Arg, ...] = (*turned, *rest[1:], *[NONE] * 3)
                    with run.op("aten::_flash_attention_backward", args) as inner:
                        grads: list[Arg] = [self.empty_like(q) for _ in range(3)]
                        self.empty((BATCH, HEADS, SEQ), F32)
                        scratch = run.tensor((BATCH, SEQ, HEADS, HEAD_DIM), F32)
                        size = lit(scratch.shape)
                        with run.op("aten::zeros", (size, lit(6), lit(0), CUDA, NONE)) as zeros:
                            self.run.leaf("aten::empty", (size, lit(6), lit(0), CUDA, NONE, NONE))
                            with run.op("aten::zero_", (scratch,)) as zero:
                                run.memset(scratch.storage.nbytes)
                                zero.result = [scratch]
                            zeros.result = [scratch]
                        for kernel in (k.K_FLASH_DOT, k.K_FLASH_BACK, k.K_FLASH_CONVERT):
                            run.kernel(kernel)
                        inner.result = grads
                    op.result = grads
            three = [x for x in grads if isinstance(x, Tensor)]
            with run.evaluate("UnbindBackward0", unbound, three):
                stacked = run.tensor((3, *three[0].shape))
                with run.op("aten::stack", (three, lit(0))) as op:
                    with run.op("aten::cat", (three, lit(0))) as cat:
                        run.kernel(k.K_CAT)
                        cat.result = [stacked]
                    op.result = [stacked]
            with run.evaluate("PermuteBackward0", permuted, (stacked,)):
                with run.op("aten::permute", (stacked, lit((1, 3, 0, 2, 4)))) as op:
                    s = stacked.strides
                    back = self.as_strided(stacked, heads.shape, (s[1], s[3], s[0], s[2], s[4]))
                    op.result = [back]
                with run.op("aten::clone", (back, lit(0))) as op:
                    copied = self.empty_like(back)
                    with run.op("aten::copy_", (copied, back, lit(False))) as copy:
                        run.kernel(k.K_COPY)
                        copy.result = [copied]
                    op.result = [copied]
            return unview(copied)

        return y, backward

    # -- a layer, a step -------------------------------------------------------------------------

    def block(self, layer: Layer, x: Tensor) -> tuple[Tensor, Backward]:
        a, back_norm1 = self.normed(layer.norm1, x, layer)
        a, back_qkv = self.linear(layer.qkv, a, layer)
        a, back_attention = self.attention(a)
        a, back_out = self.linear(layer.out, a, layer)
        a, back_drop1 = self.dropout(a)
        mid, joined1 = self.add(x, a)
        b, back_norm2 = self.normed(layer.norm2, mid, layer)
        b, back_up = self.linear(layer.up, b, layer)
        b, back_gelu = self.elementwise("gelu", (lit("none"),), b, k.K_GELU, k.K_GELU_BACK)
        b, back_down = self.linear(layer.down, b, layer)
        b, back_drop2 = self.dropout(b)
        y, joined2 = self.add(mid, b)

        def backward(grad: Tensor) -> Tensor:
            for node, steps in (
                (joined2, (back_drop2, back_down, back_gelu, back_up, back_norm2)),
                (joined1, (back_drop1, back_out, back_attention, back_qkv, back_norm1)),
            ):
                with self.run.evaluate("AddBackward0", node, (grad,)):
                    pass
                inner = grad
                for step in steps:
                    inner = step(inner)
                self.add_(inner, grad)
                grad = inner
            return grad

        return y, backward

    def batch(self) -> Tensor:
        run = self.run
        tokens = run.tensor((BATCH, SEQ), I64)
        options = (lit(4), lit(0), CUDA, NONE, lit(True))
        with run.op("aten::to", (self.host_tokens, *options, lit(False), NONE)) as outer:
            with run.op("aten::_to_copy", (self.host_tokens, *options, NONE)) as op:
                size = lit(tokens.shape)
                args = (size, lit(tokens.strides), lit(4), lit(0), CUDA, NONE)
                run.leaf("aten::empty_strided", args, tokens)
                with run.op("aten::copy_", (tokens, self.host_tokens, lit(True))) as copy:
                    run.copy("HtoD", tokens.storage.nbytes)
                    copy.result = [tokens]
                op.result = [tokens]
            outer.result = [tokens]
        return tokens

    def embed(self, tokens: Tensor) -> tuple[Tensor, Callable[[Tensor], None]]:
        run = self.run
        args = (self.embedding, tokens, lit(-1), lit(False), lit(False))
        with self.differentiable("aten::embedding", args) as (op, node):
            flat = self.reshape(tokens, (TOKENS,))
            with run.op("aten::index_select", (self.embedding, lit(0), flat)) as select:
                rows = self.empty((TOKENS, DIM))
                run.kernel(k.K_EMBED)
                select.result = [rows]
            x = self.view(rows, (BATCH, SEQ, DIM))
            op.result = [x]

        def backward(grad: Tensor) -> None:
            with run.evaluate("EmbeddingBackward0", node, (grad,)):
                rest = (lit(VOCAB), lit(-1), lit(False))
                dense = run.tensor((VOCAB, DIM))
                with run.op("aten::embedding_backward", (grad, tokens, *rest, lit(False))) as op:
                    args = (grad, tokens, *rest)
                    with run.op("aten::embedding_dense_backward", args) as inner:
                        for kernel in (k.K_SORT, k.K_SORT, k.K_EMBED_BACK):
                            run.kernel(kernel)
                        inner.result = [dense]
                    op.result = [dense]
            self.accumulate(self.embedding, dense, None)
            with run.op("aten::clone", (dense, NONE)) as op:
                copied = self.empty_like(dense)
                with run.op("aten::copy_", (copied, dense, lit(False))) as copy:
                    run.copy("DtoD", dense.storage.nbytes)
                    copy.result = [copied]
                op.result = [copied]

        return x, backward

    def loss(self, x: Tensor, target: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
        run = self.run
        x, back_norm = self.normed(self.norm, x, None)
        flat, unflatten = self.viewed(x, (TOKENS, DIM))
        with self.differentiable("aten::t", (self.head,)) as (op, turned):
            weight = self.transpose(self.head, 0, 1)
            op.result = [weight]
        with self.differentiable("aten::mm", (flat, weight)) as (op, product):
            logits = run.tensor((TOKENS, VOCAB))
            run.kernel(GEMM_HEAD)
            op.result = [logits]
        goal = self.reshape(target, (TOKENS,))
        rest = (NONE, lit(1), lit(-100))
        value, weight_sum = run.tensor((), F32), run.tensor((), F32)
        probs = run.tensor((TOKENS, VOCAB), F32)
        args: tuple[Arg, ...] = (logits, goal, *rest, lit(0.0))
        with run.op("aten::cross_entropy_loss", args, grad=True) as outer:
            with run.op("aten::log_softmax", (logits, lit(1), lit(6)), grad=True) as soft:
                args = (logits, lit(1), lit(True))
                with self.differentiable("aten::_log_softmax", args) as (op, softmax):
                    run.kernel(k.K_SOFTMAX)
                    op.result = [probs]
                soft.result = [probs]
            with ExitStack() as stack:
                for name in ("aten::nll_loss_nd", "aten::nll_loss"):
                    op = stack.enter_context(run.op(name, (probs, goal, *rest), grad=True))
                    op.result = [value]
                args = (probs, goal, *rest)
                op, nll = stack.enter_context(self.differentiable("aten::nll_loss_forward", args))
                run.kernel(k.K_NLL)
                op.result = [value, weight_sum]
            outer.result = [value]

        def backward() -> Tensor:
            seed = run.tensor((), F32)
            run.thread = run.main
            with run.op("aten::ones_like", (value, NONE, NONE, NONE, lit(False), lit(1))) as op:
                seed = self.empty_like(value)
                with run.op("aten::fill_", (seed, lit(1.0))) as fill:
                    run.kernel(k.K_FILL)
                    fill.result = [seed]
                op.result = [seed]
            run.thread = run.autograd
            with run.evaluate("NllLossBackward0", nll, (seed,)):
                grad = run.tensor(probs.shape, F32)
                args: tuple[Arg, ...] = (seed, probs, goal, *rest, weight_sum)
                with run.op("aten::nll_loss_backward", args) as op:
                    with run.op("aten::zero_", (grad,)) as zero:
                        run.memset(grad.storage.nbytes)
                        zero.result = [grad]
                    run.kernel(k.K_NLL_BACK)
                    op.result = [grad]
            with run.evaluate("LogSoftmaxBackward0", softmax, (grad,)):
                args = (grad, probs, lit(1), lit(15))
                with run.op("aten::_log_softmax_backward_data", args) as op:
                    dlogits = run.tensor(logits.shape)
                    run.kernel(k.K_SOFTMAX_BACK)
                    op.result = [dlogits]
            with run.evaluate("MmBackward0", product, (dlogits,)):
                dw = self.t(self.mm(self.t(flat), dlogits, GEMM_HEAD))
                dx = self.mm(dlogits, self.t(weight), GEMM_HEAD)
            with run.evaluate("TBackward0", turned, (dw,)):
                dw = self.t(dw)
            self.accumulate(self.head, dw, None)
            return back_norm(unflatten(dx))

        return value, backward

    def optimize(self, layers: list[Layer]) -> None:
        run = self.run
        with run.annotation("Optimizer.step#AdamW.step"):
            for layer in layers:
                first, second = layer.moments
                lists: dict[int, tuple[Arg, ...]] = {
                    1: (layer.parameters,),
                    2: (first, layer.grads),
                    3: (second, layer.grads, layer.grads),
                }
                for name, depth, kernel in k.FOREACH:
                    with run.op(name, (*lists[depth], lit(0.001))):
                        for _ in range(FOREACH_LAUNCHES):
                            run.kernel(kernel)
        with run.annotation("Optimizer.zero_grad#AdamW.zero_grad"):
            pass

    def report(self, loss: Tensor) -> None:
        """`loss.item()`: the one point of a step at which the host waits for the device."""
        run = self.run
        with run.op("aten::item", (loss,)), run.op("aten::_local_scalar_dense", (loss,)):
            run.copy("DtoH", loss.dtype.size)
            run.synchronize()

    def fill(self, ops: int) -> None:
        """As many more ops as are wanted: running means, with a kernel in each fourth."""
        for i in range(ops):
            with self.run.op("aten::mul_", (self.mean, self.scale)) as op:
                if not i % 4:
                    self.run.kernel(k.K_MUL)
                op.result = [self.mean]

    def step(self, number: int, depth: int, fill: int = 0) -> None:
        run, layers = self.run, self.layers[:depth]
        scopes: list[list[Tensor]] = []
        with run.step(number):
            tokens, target = self.batch(), self.batch()
            x, back_embedding = self.embed(tokens)
            backs: list[Backward] = []
            base, run.scope = run.scope, []
            for layer in layers:
                x, back = self.block(layer, x)
                backs.append(back)
                scopes.append(run.scope)
                run.scope = []
            value, back_loss = self.loss(x, target)
            scopes.append(run.scope)
            run.pass_time(20_000, 60_000)
            grad = back_loss()
            for back in reversed(backs):
                done = scopes.pop()
                run.scope = scopes[-1]
                grad = back(grad)
                run.release(done)
            back_embedding(grad)
            for _ in layers:
                run.wait_collective()
            run.comm_done()
            run.thread = run.main
            run.pass_time(15_000, 40_000)
            self.optimize(layers)
            self.report(value)
            self.fill(fill)
            run.release(scopes.pop())
            run.release(base)
            run.scope = []
