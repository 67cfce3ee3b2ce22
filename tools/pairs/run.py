"""Records a made-up run the way PyTorch's observer and Kineto do.

A `Run` plays the process: host threads that call ops, an allocator that hands out tensors, and a
device with streams. Every op, launch and kernel is written as it happens, so memory holds one
training step at most.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, NamedTuple

from .catalog import CBID, K_REDUCE, SCHEMA, Kernel
from .text import (
    AUTOGRAD_TID,
    COMM,
    COMPUTE,
    EMPTY,
    HOST_HEAD,
    HOST_TAIL,
    PID,
    PROCESS_GROUPS,
    RANKS,
    START_NS,
    WATCHDOG_TID,
    WORLD,
    complete,
    flow,
    host_node,
    kernel_args,
)
from .values import (
    BF16,
    NONE,
    OBJECT,
    Arg,
    DType,
    Layout,
    Literal,
    Shape,
    Storage,
    Tensor,
    contiguous,
    joined,
    list_layout,
    lit,
)


class Thread:
    """A host thread: its numbers, its open ops, and the Kineto events of the current step."""

    def __init__(self, tid: int, os_tid: int, first_index: int, out: IO[str]) -> None:
        self.tid = tid
        self.os_tid = os_tid
        self.index = first_index  # "Ev Idx" counts thread by thread
        self.out = out
        self.node = 0
        self.open: list[Op] = []
        self.external = 0
        self.external_end = 0
        self.events: list[str] = []

    def flush(self) -> None:
        self.out.write("".join(self.events))
        self.events.clear()


class GradNode(NamedTuple):
    """What a forward op leaves for its backward."""

    seq: int
    flow_slot: int
    start: int


class Op:
    """An op, from its call to its return."""

    __slots__ = (
        "external", "extra", "fw_parent", "fw_tid", "host_seq", "id", "index", "inputs", "kineto",
        "name", "parent", "result", "rf_id", "scope", "seq", "slot", "start", "thread",
    )  # fmt: skip

    id: int
    parent: int
    rf_id: int
    external: int
    index: int
    slot: int
    start: int
    inputs: str
    kineto: str

    def __init__(self, name: str, thread: Thread) -> None:
        self.name = name
        self.thread = thread
        self.result: list[Arg] = []
        self.extra = ""
        self.seq = -1
        self.host_seq = -1
        self.scope = 0
        self.fw_tid = 0
        self.fw_parent = 0


class Counts:
    def __init__(self) -> None:
        self.root_nodes = 0  # process, threads, process groups
        self.launches = self.kernels = self.copies = self.memsets = self.collectives = 0


class Stream:
    def __init__(self, number: int) -> None:
        self.number = number
        self.free = 0  # when what has been queued so far is done
        self.first = 0
        self.last = 0


class Run:
    def __init__(
        self, seed: int, host: IO[str], sections: tuple[IO[str], IO[str], IO[str]], main_ops: int
    ) -> None:
        """`main_ops`: how many ops the main thread will record (Kineto lists it first)."""
        self.random = random.Random(seed)
        self.host = host
        self.device_out = sections[2]
        self.main = Thread(1, PID, 0, sections[0])
        self.autograd = Thread(2, AUTOGRAD_TID, main_ops, sections[1])
        self.thread = self.main
        self.counts = Counts()
        self.now = START_NS
        self.next_id = 2
        self.rf_id = 0
        self.blocks = 0
        self.seq = 30
        self.flow_id = 0
        self.correlation = 8000
        self.collective_seq = 0
        self.streams = {COMPUTE: Stream(COMPUTE), COMM: Stream(COMM)}
        self.scope: list[Tensor] = []
        self.free_ids: list[int] = []
        self.free_storage: dict[int, list[int]] = {}
        self._args: dict[tuple[Layout, ...], tuple[str, str]] = {}
        self._kernel_args: dict[tuple[Kernel, int], tuple[str, str]] = {}
        host.write(HOST_HEAD)

    # -- tensors ---------------------------------------------------------------------------------

    def tensor(self, shape: Shape, dtype: DType = BF16, strides: Shape | None = None) -> Tensor:
        nbytes = max(512, math.prod(shape) * dtype.size)
        made = Tensor(shape, strides or contiguous(shape), dtype, Storage(nbytes))
        self.scope.append(made)
        return made

    def alias(self, base: Tensor, shape: Shape, strides: Shape | None = None) -> Tensor:
        made = Tensor(shape, strides or contiguous(shape), base.dtype, base.storage)
        made.device = base.device
        self.scope.append(made)
        return made

    def release(self, tensors: list[Tensor]) -> None:
        """Memory is given back: later tensors take over addresses, and so ids."""
        for tensor in tensors:
            if tensor.id:
                self.free_ids.append(tensor.id)
                tensor.id, tensor.text = 0, ""
            storage = tensor.storage
            storage.views -= 1
            if not storage.views and storage.id:
                self.free_storage.setdefault(storage.nbytes, []).append(storage.id)
                storage.id = 0
        tensors.clear()

    def _new_id(self) -> int:
        made = self.next_id
        self.next_id += 1
        return made

    def _value(self, arg: Arg) -> str:
        if isinstance(arg, Tensor):
            return arg.text or self._meet(arg)
        if isinstance(arg, Literal):
            return arg.text
        return "[" + ",".join([x.text or self._meet(x) for x in arg]) + "]"

    def _meet(self, tensor: Tensor) -> str:
        tensor.id = self.free_ids.pop() if self.free_ids else self._new_id()
        storage = tensor.storage
        if not storage.id:
            reusable = self.free_storage.get(storage.nbytes)
            storage.id = reusable.pop() if reusable else self._new_id()
        tensor.text = (
            f"[{tensor.id},{storage.id},{tensor.offset},{math.prod(tensor.shape)},"
            f'{tensor.dtype.size},"{tensor.device}"]'
        )
        return tensor.text

    def _arguments(self, args: Sequence[Arg]) -> tuple[str, str]:
        """A host node's inputs or outputs, and the same for Kineto."""
        if not args:
            return EMPTY, ""
        layouts = tuple(
            [x.layout if not isinstance(x, list) else list_layout(tuple([t.layout for t in x]))
             for x in args]
        )  # fmt: skip
        found = self._args.get(layouts)
        if found is None:
            shapes = joined([x.shape for x in layouts])
            types = joined([f'"{x.type}"' for x in layouts])
            strides = joined([x.strides for x in layouts])
            quoted = [
                "[" + ", ".join(f'"{x}"' for x in column) + "]"
                for column in ([x.concrete for x in layouts], [x.kineto_type for x in layouts])
            ]
            nested = [
                "[" + ", ".join(column) + "]"
                for column in (
                    [x.kineto_strides for x in layouts],
                    [x.kineto_shape for x in layouts],
                )
            ]
            found = self._args[layouts] = (
                f', "shapes": {shapes}, "types": {types}, "strides": {strides}}}',
                f' "Concrete Inputs": {quoted[0]}, "Input type": {quoted[1]}, '
                f'"Input Strides": {nested[0]}, "Input Dims": {nested[1]},',
            )
        values = ",".join([self._value(x) for x in args])
        return f'{{"values": [{values}]{found[0]}', found[1]

    # -- ops -------------------------------------------------------------------------------------

    def pass_time(self, low: int, high: int) -> None:
        self.now += low + int(self.random.random() * (high - low))

    def enter(self, name: str, args: Sequence[Arg] = (), *, differentiable: bool = False) -> Op:
        thread = self.thread
        if not thread.node:
            self._thread_node(thread)
        op = Op(name, thread)
        op.parent = thread.open[-1].id if thread.open else thread.node
        op.id = self._new_id()
        self.rf_id += 1
        op.rf_id = self.rf_id
        if thread.external == thread.external_end:
            thread.external = 512 * self.blocks
            thread.external_end = thread.external + 512
            self.blocks += 1
        thread.external += 1
        op.external = thread.external
        op.index = thread.index
        thread.index += 1
        op.inputs, op.kineto = self._arguments(args)
        if differentiable:
            op.seq = op.host_seq = self.seq
        self.pass_time(400, 1900)
        op.start = self.now
        self.pass_time(300, 1100)
        op.slot = len(thread.events)
        thread.events.append("")
        thread.open.append(op)
        return op

    def leave(self, op: Op) -> None:
        thread = op.thread
        self.pass_time(500, 2500)
        thread.open.pop()
        outputs = self._arguments(op.result)[0]
        self.host.write(
            host_node(
                (op.id, op.parent, op.rf_id),
                op.name,
                op.inputs,
                outputs,
                fw_parent=op.fw_parent,
                seq=op.host_seq,
                scope=op.scope,
                tids=(thread.tid, op.fw_tid),
                schema=SCHEMA.get(op.name, ""),
                extra=op.extra,
            )
            + ","
        )
        grad = ""
        if op.seq >= 0:
            grad = f'"Sequence number": {op.seq}, "Fwd thread id": {int(thread is self.autograd)}, '
        if op.name.startswith("autograd::engine"):
            args = f'"Record function id": {op.rf_id}, {grad}'
        else:
            args = f'{grad}"Record function id": {op.rf_id},{op.kineto} '
        thread.events[op.slot] = complete(
            "user_annotation" if op.scope == 7 else "cpu_op",
            op.name,
            PID,
            thread.os_tid,
            op.start,
            self.now - op.start,
            f'"External id": {op.external},{args}"Ev Idx": {op.index}',
        )

    @contextmanager
    def op(self, name: str, args: Sequence[Arg] = (), *, grad: bool = False) -> Iterator[Op]:
        op = self.enter(name, args, differentiable=grad)
        yield op
        self.leave(op)

    @contextmanager
    def annotation(self, name: str) -> Iterator[Op]:
        op = self.enter(name)
        op.scope = 7
        yield op
        self.leave(op)

    def leaf(self, name: str, args: Sequence[Arg], *result: Arg) -> None:
        op = self.enter(name, args)
        op.result = list(result)
        self.leave(op)

    def _thread_node(self, thread: Thread) -> None:
        thread.node = self._new_id()
        self._write_root(thread.node, "thread", thread.tid)
        if thread is self.main:
            node = self._new_id()
            self.rf_id += 1
            inputs = (
                f'{{"values": [{PROCESS_GROUPS}], "shapes": [[]], "types": ["String"], '
                '"strides": [[]]}'
            )
            self.host.write(
                host_node(
                    (node, thread.node, self.rf_id),
                    "## process_group:init ##",
                    inputs,
                    EMPTY,
                    tids=(1, 0),
                )
                + ","
            )
            self.counts.root_nodes += 1

    def _write_root(self, node: int, kind: str, tid: int) -> None:
        name = f"[pytorch|profiler|execution_trace|{kind}]"
        end = "," if kind == "thread" else ""
        self.host.write(host_node((node, 1, 0), name, EMPTY, EMPTY, tids=(tid, 0)) + end)
        self.counts.root_nodes += 1

    # -- autograd --------------------------------------------------------------------------------

    def grad_node(self, op: Op) -> GradNode:
        """The op builds a node of the backward graph: its flow begins here."""
        node = GradNode(self.seq, len(op.thread.events), op.start)
        op.thread.events.append("")
        self.seq += 1
        return node

    @contextmanager
    def evaluate(self, name: str, node: GradNode | None, grads: Sequence[Tensor]) -> Iterator[Op]:
        """The autograd engine runs one node (`None`: an AccumulateGrad) for these gradients."""
        outer = self.enter(f"autograd::engine::evaluate_function: {name}")
        outer.seq = node.seq if node else -1
        inner = self.enter(name, grads)
        inner.scope = 1
        inner.fw_tid = 1
        inner.fw_parent = self.main.open[-1].id
        if node:
            inner.seq = inner.host_seq = node.seq
            self.flow_id += 1
            self.main.events[node.flow_slot] = flow(
                "s", self.flow_id, PID, PID, node.start, "fwdbwd"
            )
            self.thread.events.append(
                flow("f", self.flow_id, PID, AUTOGRAD_TID, inner.start, "fwdbwd")
            )
        yield inner
        self.leave(inner)
        self.leave(outer)

    # -- runtime calls and device work -----------------------------------------------------------

    def _linked(self) -> Op | None:
        """The op that CUPTI links a call to: annotations do not count."""
        return next((op for op in reversed(self.thread.open) if op.scope != 7), None)

    def _call(self, name: str, low: int, high: int) -> tuple[int, int, str]:
        """A runtime call passes: its correlation, its start, and its link."""
        self.pass_time(150, 700)
        self.correlation += 1 + int(self.random.random() * 6)  # some calls are not recorded
        start = self.now
        self.pass_time(low, high)
        op = self._linked()
        return self.correlation, start, f'"External id": {op.external},' if op else ""

    def _runtime(self, name: str, correlation: int, start: int, link: str) -> str:
        return complete(
            "cuda_runtime",
            name,
            PID,
            self.thread.os_tid,
            start,
            self.now - start,
            f'{link}      "cbid": {CBID[name]}, "correlation": {correlation}',
        )

    def call(self, name: str, low: int = 400, high: int = 1500) -> None:
        """A runtime call that launches nothing."""
        correlation, start, link = self._call(name, low, high)
        self.device_out.write(self._runtime(name, correlation, start, link))
        self.device_out.write(flow("f", correlation, PID, self.thread.os_tid, start, "ac2g"))

    def _submit(
        self, name: str, cat: str, what: str, stream: Stream, ns: int, args: str
    ) -> tuple[int, int]:
        """A call that puts work of `ns` on a stream. `args` has a place for the correlation."""
        correlation, start, link = self._call(name, 2600, 6800)
        begin = max(self.now + 500 + int(self.random.random() * 1500), stream.free + 900)
        ns = int(ns * (0.97 + 0.06 * self.random.random()))
        stream.free = begin + ns
        stream.first = stream.first or begin
        stream.last = stream.free
        self.counts.launches += 1
        tid, shown = stream.number, args.replace("@", str(correlation), 1)
        self.device_out.write(
            complete(cat, what, 0, tid, begin, ns, link + shown)
            + flow("f", correlation, 0, tid, begin, "ac2g")
            + self._runtime(name, correlation, start, link)
            + flow("s", correlation, PID, self.thread.os_tid, start, "ac2g")
        )
        return begin, stream.free

    def kernel(self, kernel: Kernel, *, stream: int = COMPUTE, extra: str = "") -> tuple[int, int]:
        """Launch a kernel; when it runs."""
        key = (kernel, stream)
        args = self._kernel_args.get(key)
        if args is None:
            args = self._kernel_args[key] = kernel_args(kernel, stream)
        name = "cudaLaunchKernel"
        if kernel is K_REDUCE or kernel.name.startswith("sm90"):  # launched with attributes
            name = "cudaLaunchKernelExC"
        self.counts.kernels += 1
        text = f"{args[0]}@{args[1]}{extra}"
        return self._submit(name, "kernel", kernel.name, self.streams[stream], kernel.ns, text)

    def _transfer(self, call: str, cat: str, what: str, nbytes: int, ns: int) -> None:
        text = (
            f'      "device": 0, "context": 1,      "stream": {COMPUTE}, "correlation": @,      '
            f'"bytes": {nbytes}, "memory bandwidth (GB/s)": {nbytes / ns}'
        )
        self._submit(call, cat, what, self.streams[COMPUTE], ns, text)

    def copy(self, kind: str, nbytes: int) -> None:
        names = {
            "HtoD": "Memcpy HtoD (Pinned -> Device)",
            "DtoH": "Memcpy DtoH (Device -> Pinned)",
            "DtoD": "Memcpy DtoD (Device -> Device)",
        }
        per_byte = 1100 if kind == "DtoD" else 24
        ns = 1300 + nbytes // per_byte
        self._transfer("cudaMemcpyAsync", "gpu_memcpy", names[kind], nbytes, ns)
        self.counts.copies += 1

    def memset(self, nbytes: int) -> None:
        ns = 1100 + nbytes // 2400
        self._transfer("cudaMemsetAsync", "gpu_memset", "Memset (Device)", nbytes, ns)
        self.counts.memsets += 1

    def synchronize(self) -> None:
        """The host waits for the compute stream."""
        correlation, start, link = self._call("cudaStreamSynchronize", 1500, 4000)
        self.now = max(self.now, self.streams[COMPUTE].free + 1800)
        self.device_out.write(
            self._runtime("cudaStreamSynchronize", correlation, start, link)
            + flow("s", correlation, PID, self.thread.os_tid, start, "ac2g")
        )

    def wait_for(self, waiting: int, awaited: int) -> None:
        """One stream waits for what is queued on another, by an event."""
        self.call("cudaEventRecord", 500, 2000)
        self.call("cudaStreamWaitEvent", 500, 1500)
        self.streams[waiting].free = max(self.streams[waiting].free, self.streams[awaited].free)

    # -- collectives -----------------------------------------------------------------------------

    def all_reduce(self, bucket: Tensor) -> None:
        self.counts.collectives += 1
        self.collective_seq += 1
        result: list[Arg] = [[bucket], OBJECT]
        with self.op(
            "c10d::allreduce_", ([bucket], OBJECT, OBJECT, NONE, lit(True), lit(-1))
        ) as op:
            op.result = result
            with self._comms("allreduce", bucket) as comms:
                self.call("cudaStreamIsCapturing")
                self.wait_for(COMM, COMPUTE)
                with self.annotation("nccl:all_reduce") as note:
                    note.inputs, note.kineto = self._arguments([bucket])
                    self.call("cudaStreamGetCaptureInfo_v2")
                    facts = self._comms_args("allreduce", bucket)
                    start, end = self.kernel(K_REDUCE, stream=COMM, extra=facts)
                    self._gpu_annotation(note, COMM, start, end)
                self.call("cudaEventRecord", 500, 2000)
                comms.result = [[bucket]]

    def wait_collective(self) -> None:
        """`Work.wait`: the compute stream waits for the communication stream."""
        with self._comms("wait", None):
            self.call("cudaStreamWaitEvent", 500, 1500)

    def comm_done(self) -> None:
        self.streams[COMPUTE].free = max(self.streams[COMPUTE].free, self.streams[COMM].free)

    @contextmanager
    def _comms(self, name: str, tensor: Tensor | None) -> Iterator[Op]:
        op = self.enter("record_param_comms")
        numel = math.prod(tensor.shape) if tensor else 0
        # the elements of a tuple have no quotes in types, and the strings no shape of their own
        group = ("0", "default_pg") if tensor else ("", "")
        start, stride, size = (0, 1, WORLD) if tensor else (-1, -1, 1)
        layout = tensor.layout if tensor else Layout("")
        values = [self._value([tensor])] if tensor else []
        op.inputs = (
            '{"values": '
            + joined(
                [
                    *values,
                    f"[{self.collective_seq},false]",
                    f'["{group[0]}","{group[1]}"]',
                    0,
                    f'"{name}"',
                    *("[]", "[]", start, stride, size, "true" if tensor else "false"),
                ]
            )
            + ', "shapes": '
            + joined([*[joined([layout.shape])] * len(values), *["[[],[]]"] * 2, *["[]"] * 8])
            + ', "types": ["'
            + '","'.join(
                [
                    *[f"GenericList[{layout.type}]"] * len(values),
                    *("Tuple[Int,Bool]", "Tuple[String,String]", "Int", "String"),
                    *("GenericList[]", "GenericList[]", "Int", "Int", "Int", "Bool"),
                ]
            )
            + '"], "strides": '
            + joined([*[joined([layout.strides])] * len(values), *["[[],[]]"] * 2, *["[]"] * 8])
            + "}"
        )
        rank = f', "Global rank start": {start}, "Global rank stride": {stride}, "Rank": 0,'
        op.kineto = self._comms_args(name, tensor).lstrip(",") + (rank if tensor else ",")
        dtype = "BFloat16" if tensor else "Byte"
        facts = [("collective_name", "string", f'"{name}"'), ("dtype", "string", f'"{dtype}"')]
        facts += [("in_msg_nelems", "uint64", str(numel)), ("out_msg_nelems", "uint64", str(numel))]
        facts += [("in_split_size", "string", '"[]"'), ("out_split_size", "string", '"[]"')]
        if tensor:
            facts += [("global_rank_start", "uint64", "0"), ("global_rank_stride", "uint64", "1")]
            facts += [("pg_name", "string", '"0"'), ("pg_desc", "string", '"default_pg"')]
        facts += [("pg_size", "uint64", str(size))]
        op.extra = "".join(
            f', {{"name": "{key}", "type": "{kind}", "value": {value}}}'
            for key, kind, value in facts
        )
        yield op
        self.leave(op)

    def _comms_args(self, name: str, tensor: Tensor | None) -> str:
        """What Kineto says of a collective, on the op and on its kernel."""
        numel = math.prod(tensor.shape) if tensor else 0
        args = (
            f', "Collective name": "{name}", "In msg nelems": {numel}, "Out msg nelems": {numel}, '
            f'"Group size": {WORLD if tensor else 1}, "dtype": "{"BFloat16" if tensor else "Byte"}"'
        )
        if tensor:
            address = f"[[140{tensor.storage.id:012d}]]"
            args += f', "Input Tensors start": "{address}", "Output Tensors start": "{address}"'
        args += ', "In split size": "[]", "Out split size": "[]"'
        if tensor:
            comms_id = (0x9E3779B97F4A7C15 * (self.collective_seq + 1)) % (1 << 64)
            args += (
                ', "Process Group Name": "0", "Process Group Description": "default_pg", '
                f'"Process Group Ranks": "{RANKS}", "Seq": {self.collective_seq}, '
                f'"Comms Id": {comms_id}'
            )
        return args

    def _gpu_annotation(self, note: Op, stream: int, start: int, end: int) -> None:
        self.device_out.write(
            complete(
                "gpu_user_annotation",
                note.name,
                0,
                stream,
                start - 1,
                end - start + 2,
                f'"External id": {note.external}',
            )
        )

    # -- steps and the end -----------------------------------------------------------------------

    @contextmanager
    def step(self, number: int) -> Iterator[None]:
        stream = self.streams[COMPUTE]
        stream.first = 0
        with self.annotation(f"ProfilerStep#{number}") as note:
            yield
        if stream.first:
            self._gpu_annotation(note, COMPUTE, stream.first, stream.last)
        self._watchdog(note.start)
        self.main.flush()
        self.autograd.flush()

    def _watchdog(self, start: int) -> None:
        """NCCL's watchdog polls, beside everything else and linked to nothing."""
        for ts in range(start, self.now - 10_000, 20_000_000):
            self.correlation += 1
            args = f'      "cbid": {CBID["cudaEventQuery"]}, "correlation": {self.correlation}'
            self.device_out.write(
                complete("cuda_runtime", "cudaEventQuery", PID, WATCHDOG_TID, ts, 2100, args)
            )

    def finish(self) -> None:
        self._write_root(1, "process", 0)
        self.host.write(HOST_TAIL.format(4329307 + (self.now - START_NS) // 1_000_000))
