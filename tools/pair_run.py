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

from pair_catalog import CBID, K_REDUCE, SCHEMA, Kernel

PID, AUTOGRAD_TID, WATCHDOG_TID = 41250, 41893, 41477
WORLD = 8
BASE_NS = 1790857026000000000  # times in the device file count from here
START_NS = 5114338193273303
COMPUTE, COMM = 7, 20  # streams
SMS = 132

Shape = tuple[int, ...]


class DType(NamedTuple):
    name: str
    size: int


BF16 = DType("c10::BFloat16", 2)
F32 = DType("float", 4)
F64 = DType("double", 8)
I64 = DType("long int", 8)
BOOL = DType("bool", 1)


# ------------------------------------------------------------------------------------------------
# Arguments of ops, as each of the two files writes them


class Layout(NamedTuple):
    """All that is written about an argument except its value."""

    type: str
    shape: str = "[]"
    strides: str = "[]"
    concrete: str = ""
    kineto_type: str = ""
    kineto_shape: str = "[]"
    kineto_strides: str = "[]"


class Literal(NamedTuple):
    text: str
    layout: Layout


class Storage:
    __slots__ = ("id", "nbytes", "views")

    def __init__(self, nbytes: int) -> None:
        self.id = 0
        self.nbytes = nbytes
        self.views = 0


class Tensor:
    """A view of a storage. Ids are given when an observer first meets it."""

    __slots__ = ("device", "dtype", "id", "layout", "offset", "shape", "storage", "strides", "text")

    def __init__(self, shape: Shape, strides: Shape, dtype: DType, storage: Storage) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.storage = storage
        storage.views += 1
        self.offset = 0
        self.device = "cuda:0"
        self.id = 0
        self.text = ""
        self.layout = _tensor_layout(shape, strides, dtype)


Arg = Tensor | Literal | list[Tensor]


def contiguous(shape: Shape) -> Shape:
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return tuple(strides)


def joined(items: Sequence[object]) -> str:
    """A list as the host trace has it: no spaces."""
    return "[" + ",".join(map(str, items)) + "]"


_layouts: dict[object, Layout] = {}
_literals: dict[tuple[type, object], Literal] = {}


def _tensor_layout(shape: Shape, strides: Shape, dtype: DType) -> Layout:
    key = (shape, strides, dtype)
    found = _layouts.get(key)
    if found is None:
        found = _layouts[key] = Layout(
            type=f"Tensor({dtype.name})",
            shape=joined(shape),
            strides=joined(strides),
            kineto_type=dtype.name,
            kineto_shape=str(list(shape)),
            kineto_strides=str(list(strides)),
        )
    return found


def _list_layout(layouts: tuple[Layout, ...]) -> Layout:
    found = _layouts.get(layouts)
    if found is None:
        found = _layouts[layouts] = Layout(
            type="GenericList" + joined([x.type for x in layouts]),
            shape=joined([x.shape for x in layouts]),
            strides=joined([x.strides for x in layouts]),
            kineto_type="TensorList",
            kineto_shape="[" + ", ".join(x.kineto_shape for x in layouts) + "]",
            kineto_strides="[" + ", ".join(x.kineto_strides for x in layouts) + "]",
        )
    return found


def lit(value: int | float | str | tuple[int, ...]) -> Literal:
    """A bool, int, float, str or tuple of ints as an argument."""
    found = _literals.get((type(value), value))
    if found is None:
        found = _literals[type(value), value] = _literal(value)
    return found


def _literal(value: int | float | str | tuple[int, ...]) -> Literal:
    if isinstance(value, bool):
        layout = Layout("Bool", concrete=str(value), kineto_type="Scalar")
        return Literal("true" if value else "false", layout)
    if isinstance(value, int):
        return Literal(str(value), Layout("Int", concrete=str(value), kineto_type="Scalar"))
    if isinstance(value, float):
        shown = f"{value:g}" if value % 1 else f"{value:.0f}."
        layout = Layout("Double", concrete=shown, kineto_type="Scalar")
        return Literal(f"{value:.6f}", layout)
    if isinstance(value, str):
        return Literal(f'"{value}"', Layout("String"))
    kind = "Bool" if value and isinstance(value[0], bool) else "Int"
    nested = joined(["[]"] * len(value))
    layout = Layout(
        "GenericList" + joined([kind] * len(value)),
        shape=nested,
        strides=nested,
        concrete=str(list(value)),
        kineto_type="ScalarList",
    )
    return Literal(joined([str(x).lower() for x in value]), layout)


NONE = Literal('"<None>"', Layout("None"))
OBJECT = Literal('"<Object>"', Layout("Object"))
CUDA = Literal('"cuda:0"', Layout("Device"))


# ------------------------------------------------------------------------------------------------
# Text of the two files

HOST_HEAD = (
    f'{{\n  "schema": "1.1.1-chakra.0.0.4", "pid": {PID}, "time": "2026-11-29 16:56:04", '
    '"start_ts": 4329307,\n  "nodes": ['
)
HOST_TAIL = '\n  ],\n  "finish_ts": {}\n}}'
EMPTY = '{"values": [], "shapes": [], "types": [], "strides": []}'
PROCESS_GROUPS = (
    r'"[{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \"backend_config\": \"cuda:nccl\", '
    rf'\"ranks\": [], \"group_size\": {WORLD}, \"group_count\": 1}}]"'
)
RANKS = str(list(range(WORLD)))


def host_node(
    ids: tuple[int, int, int],
    name: str,
    inputs: str,
    outputs: str,
    *,
    fw_parent: int = 0,
    seq: int = -1,
    scope: int = 7,
    tids: tuple[int, int],
    schema: str = "",
    extra: str = "",
) -> str:
    node, parent, rf_id = ids
    tid, fw_tid = tids
    return (
        f'\n      {{\n        "id": {node}, "name": "{name}", "ctrl_deps": {parent},\n'
        f'        "inputs": {inputs},\n        "outputs": {outputs},\n'
        f'        "attrs": [{{"name": "rf_id", "type": "uint64", "value": {rf_id}}},'
        f'{{"name": "fw_parent", "type": "uint64", "value": {fw_parent}}},'
        f'{{"name": "seq_id", "type": "int64", "value": {seq}}},'
        f'{{"name": "scope", "type": "uint64", "value": {scope}}},'
        f'{{"name": "tid", "type": "uint64", "value": {tid}}},'
        f'{{"name": "fw_tid", "type": "uint64", "value": {fw_tid}}},'
        f'{{"name": "op_schema", "type": "string", "value": "{schema}"}},'
        '{"name": "kernel_backend", "type": "string", "value": ""},'
        '{"name": "kernel_file", "type": "string", "value": ""},'
        f'{{"name": "tensor_range", "type": "string", "value": ""}}{extra}]\n      }}'
    )


def us(ns: int) -> str:
    return f"{ns // 1000}.{ns % 1000:03d}"


def complete(cat: str, name: str, pid: int, tid: int, start: int, dur: int, args: str) -> str:
    return (
        f'\n  {{\n    "ph": "X",\n    "cat": "{cat}",\n    "name": "{name}",\n    "pid": {pid},\n'
        f'    "tid": {tid},\n    "ts": {us(start)},\n    "dur": {us(dur)}\n    ,\n'
        f'    "args": {{\n      {args}\n    }}\n  }},'
    )


def flow(kind: str, ident: int, pid: int, tid: int, ts: int, cat: str) -> str:
    binding = ', "bp": "e"' if kind == "f" else ""
    return (
        f'\n  {{\n    "ph": "{kind}",\n    "id": {ident},\n    "pid": {pid},\n    "tid": {tid},\n'
        f'    "ts": {us(ts)},\n    "cat": "{cat}",\n    "name": "{cat}"\n    {binding}\n  }},'
    )


def metadata(name: str, pid: int | str, tid: int, key: str, value: str | int) -> str:
    shown = f'"{value}"' if isinstance(value, str) else value
    where = f'"{pid}"' if isinstance(pid, str) else pid
    return (
        f'\n  {{\n    "ph": "M",\n    "name": "{name}",\n    "ts": {us(START_NS)},\n'
        f'    "pid": {where},\n    "tid": {tid},\n    "args": {{\n      "{key}": {shown}\n'
        "    }\n  },"
    )


def instant(name: str, pid: str, tid: str, ts: int) -> str:
    return (
        f'\n  {{\n    "ph": "i",\n    \n    "s": "g",\n    "name": "{name}",\n    "pid": "{pid}",\n'
        f'    "tid": "{tid}",\n    "ts": {us(ts)}\n    \n  }},'
    )


def device_head() -> str:
    gpu = (
        '\n    {{\n      "id": {}, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 84977844224,'
        '\n      "computeMajor": 9, "computeMinor": 0,\n      "maxThreadsPerBlock": 1024, '
        '"maxThreadsPerMultiprocessor": 2048,\n      "regsPerBlock": 65536, "warpSize": 32,\n'
        '      "sharedMemPerBlock": 49152, "numSms": 132\n    , "regsPerMultiprocessor": 65536, '
        '"sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472\n    }}'
    )
    group = (
        '{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", '
        f'"pg_size": {WORLD}, "ranks": {RANKS}}}'
    )
    names = [metadata("process_name", PID, 0, "name", "python3.12")]
    names += [metadata("process_labels", PID, 0, "labels", "CPU")]
    names += [metadata("process_sort_index", PID, 0, "sort_index", PID)]
    for device in range(WORLD):
        names.append(metadata("process_name", device, 0, "name", "python3.12"))
        names.append(metadata("process_labels", device, 0, "labels", f"GPU {device}"))
        names.append(metadata("process_sort_index", device, 0, "sort_index", 16777216 + device))
    threads = ((PID, "pt_main_thread"), (AUTOGRAD_TID, "pt_autograd_0"), (WATCHDOG_TID, "pt_nccl"))
    rows = [(PID, tid, f"thread {tid} ({name})") for tid, name in threads]
    for pid, tid, name in [
        *rows,
        *((0, stream, f"stream {stream} ") for stream in (COMPUTE, COMM)),
    ]:
        names.append(metadata("thread_name", pid, tid, "name", name))
        names.append(metadata("thread_sort_index", pid, tid, "sort_index", tid))
    return (
        '{\n    "schemaVersion": 1,\n    "deviceProperties": ['
        + ",".join(gpu.format(device) for device in range(WORLD))
        + '\n    ],\n    \n      "cupti_version": 26,\n      "cuda_runtime_version": 12080,\n'
        '      "cuda_driver_version": 12080,\n      "record_shapes": 1,\n'
        f'      "distributedInfo": {{"backend": "nccl", "rank": 0, "world_size": {WORLD}, '
        f'"pg_count": 1, "pg_config": [{group}], "nccl_version": "2.27.5"}},\n'
        '      "trace_id": "7D4A644D15B4425CAFA9A8791452D788",\n      "host_name": "host",\n'
        f'    "displayTimeUnit": "ms",\n    "baseTimeNanoseconds": {BASE_NS},\n'
        '    "traceEvents": [\n    ' + "".join(names)
    )


def device_tail(end: int) -> str:
    begin = START_NS - 74_000
    return (
        '\n  {\n    "ph": "X",\n    "cat": "Trace",\n    "name": "PyTorch Profiler (0)",\n'
        '    "pid": "Spans",\n    "tid": "PyTorch Profiler",\n'
        f'    "ts": {us(begin)},\n    "dur": {us(end - begin)}\n    ,\n'
        '    "args": {\n      "Op count": 0\n    }\n  },'
        + metadata("process_sort_index", "Spans", 0, "sort_index", 536870912)
        + instant("Iteration Start: PyTorch Profiler", "Traces", "Trace PyTorch Profiler", begin)
        + instant("Record Window End", "", "", end).rstrip(",")
        + '\n  ],"traceName": "trace.json" }'
    )


def kernel_args(kernel: Kernel, stream: int) -> tuple[str, str]:
    """A kernel's args, before and after its correlation."""
    blocks = math.prod(kernel.grid) / SMS
    threads = math.prod(kernel.block)
    warps = blocks * math.ceil(threads / 32)
    by_regs = 65536 // max(kernel.regs * threads, 1)
    by_smem = 233472 // max(kernel.smem + 1024, 1)
    active = max(1, min(by_regs, by_smem, 2048 // threads, 32))
    occupancy = min(100, round(100 * min(blocks, active) * threads / 2048))
    factor = "regs" if active == by_regs else "warps"
    return (
        f'      "queued": 0, "device": 0, "context": 1,      "stream": {stream}, "correlation": ',
        f',      "registers per thread": {kernel.regs},      "shared memory": {kernel.smem},      '
        f'"blocks per SM": {blocks:.6f},      "warps per SM": {warps:.6f},      '
        f'"grid": {list(kernel.grid)},      "block": {list(kernel.block)},      '
        f'"est. achieved occupancy %": {occupancy},      "occupancy": {{        '
        f'"activeBlocksPerMultiprocessor": {active},        "limitingFactors": "{factor}",        '
        f'"blockLimitRegs": {by_regs},        "blockLimitSharedMem": {by_smem},        '
        f'"blockLimitWarps": {2048 // threads},        "blockLimitBlocks": 32,        '
        f'"blockLimitBarriers": 16,        "allocatedRegistersPerBlock": {kernel.regs * threads},'
        f'        "allocatedSharedMemPerBlock": {kernel.smem + 1024}      }},      '
        '"graph id": 0, "graph node id": 0',
    )


# ------------------------------------------------------------------------------------------------
# The process


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
            [x.layout if not isinstance(x, list) else _list_layout(tuple([t.layout for t in x]))
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
