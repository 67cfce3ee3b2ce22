"""Truth of data: programs that make, read, write, view and free tensors, and who wrote what.

The rules of their machine. Operations run one after the other, on threads that take turns. One
with a tensor on a device launches a kernel, which begins when its stream, and the kernels that
wrote what it reads, have ended. Memory is an object that remembers for each of its items which
operation wrote it last; the id of its storage is used again after all tensors of it are gone, as in
PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from recordings import BACKWARD, MAIN, HostRecording, Profile

ITEMS, ITEM_BYTES = 16, 4
THREADS = {1: MAIN, 2: BACKWARD}
TURN_NS, OP_NS, CALL_NS = 150_000, 3000, 1000
"""A thread that idles for less than 0.1 ms is not seen to wait, so turns are longer."""

SCHEMAS = {
    "turn": "",
    "new": "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "in place": "aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
    "copy": "aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    "out": "aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)",
    "list": "aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
    "view": "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None) -> Tensor(a)",
    "empty": "aten::empty.memory_format(SymInt[] size, *, Device? device=None) -> Tensor",
    "zeros": "aten::zeros(SymInt[] size, *, Device? device=None) -> Tensor",
    "zero": "aten::zero_(Tensor(a!) self) -> Tensor(a!)",
}


@dataclass(frozen=True)
class Step:
    """One operation. `picks` choose its tensors among those that live; `frees` are dropped after.

    A `nested` one is called by a wrapper that lists the same tensors, or calls an allocator itself.
    `guarded` tells whether its stream is made to wait, by an event, for others that it needs.
    """

    kind: str
    thread: int
    stream: int
    picks: tuple[int, int, int]
    on_device: bool
    nested: bool
    guarded: bool
    frees: int


@dataclass(eq=False)
class Memory:
    """A storage: its id, its device, and for each item the operation that wrote it last."""

    number: int
    device: str
    writer: list[str | None] = field(default_factory=lambda: [None] * ITEMS)
    tensors: int = 0


@dataclass(eq=False)
class Tensor:
    """A tensor: part of a memory."""

    number: int
    memory: Memory
    begin: int = 0
    end: int = ITEMS

    @property
    def value(self) -> list[Any]:
        """As the host trace writes it."""
        place = [self.number, self.memory.number, self.begin, self.end - self.begin, ITEM_BYTES]
        return [*place, self.memory.device]


@dataclass(eq=False)
class Kernel:
    """Device work: its name, its stream, and when it ended."""

    name: str
    stream: int
    end: int


class Machine:
    """Runs steps, records them in both files, and knows the true edges, as pairs of names.

    `edges` are those of host trace and profile, `operations` those of the host trace alone.
    """

    def __init__(self) -> None:
        self.host, self.profile = HostRecording(), Profile()
        self.edges: set[tuple[str, str]] = set()
        self.operations: set[tuple[str, str]] = set()
        self.kernels: dict[str, Kernel] = {}
        self._queue: dict[int, Kernel] = {}
        self._living: list[Tensor] = []
        self._free: list[int] = []
        self._node, self._id, self._correlation = 2, 2, 0
        self._now, self._thread = 10_000, 0

    def run(self, steps: list[Step]) -> Machine:
        for step in steps:
            if step.thread != self._thread:
                self._thread = step.thread
                with self._operation("turn", [], []):
                    self._now += TURN_NS
            self._step(step)
            for _ in range(min(step.frees, len(self._living) - 1)):
                self._drop(self._living.pop(0))
        return self

    def _step(self, step: Step) -> None:
        if not self._living or step.kind in ("empty", "zeros"):
            self._make(step)
            return
        a, b, c = (self._living[pick % len(self._living)] for pick in step.picks)
        if step.kind == "view":
            self._view(a, step.picks[1] % 2)
        elif step.kind == "new":
            made = self._new("cpu" if self._on_cpu([a, b]) and not step.on_device else "cuda:0")
            self._work(step, [a.value, b.value, 1], [made.value], [a, b], [made])
        elif step.kind == "in place":
            self._work(step, [a.value, b.value], [a.value], [a, b], [a])
        elif step.kind == "copy":
            self._work(step, [a.value, b.value, False], [a.value], [b], [a])
        elif step.kind == "out":
            self._work(step, [a.value, b.value, c.value], [c.value], [a, b], [c])
        else:
            self._work(step, [[a.value, b.value], [c.value]], [], [a, b, c], [a, b])

    def _make(self, step: Step) -> None:
        made = self._new("cuda:0" if step.on_device else "cpu")
        if step.kind != "zeros":
            with self._operation("empty", [[ITEMS]], [made.value]):
                return
        with self._operation("zeros", [[ITEMS]], [made.value]) as outer:
            with self._operation("empty", [[ITEMS]], [made.value], outer):
                pass
            with self._operation("zero", [made.value], [made.value], outer) as number:
                self._access(step, number, [], [made])

    def _view(self, tensor: Tensor, second: int) -> None:
        half = (tensor.end - tensor.begin) // 2
        begin = tensor.begin + half * second
        cut = Tensor(self._number(), tensor.memory, begin, begin + half) if half else tensor
        with self._operation("view", [tensor.value, 0, 1], [cut.value]):
            pass
        if half:
            self._keep(cut)

    def _work(
        self,
        step: Step,
        inputs: list[Any],
        outputs: list[Any],
        reads: list[Tensor],
        writes: list[Tensor],
    ) -> None:
        if step.nested and step.kind != "new":
            with (
                self._operation(step.kind, inputs, outputs) as outer,
                self._operation(step.kind, inputs, outputs, outer) as number,
            ):
                self._access(step, number, reads, writes)
            return
        with self._operation(step.kind, inputs, outputs) as number:
            if step.nested:
                with self._operation("empty", [[ITEMS]], outputs, number):
                    pass
            self._access(step, number, reads, writes)

    def _access(self, step: Step, number: int, reads: list[Tensor], writes: list[Tensor]) -> None:
        """Read, then write; on a device, by a kernel."""
        name = f"op {number}"
        wrote = {
            (writer, tensor.memory.device)
            for tensor in reads
            for writer in tensor.memory.writer[tensor.begin : tensor.end]
            if writer is not None
        }
        self.operations |= {(writer, name) for writer, _ in wrote}
        self.edges |= {(writer, name) for writer, device in wrote if device == "cpu"}
        if not self._on_cpu([*reads, *writes]):
            waits = [self.kernels[writer] for writer, device in wrote if device != "cpu"]
            self.kernels[name] = self._launch(step, f"kernel {number}", waits)
        for tensor in writes:
            tensor.memory.writer[tensor.begin : tensor.end] = [name] * (tensor.end - tensor.begin)

    def _launch(self, step: Step, name: str, waits: list[Kernel]) -> Kernel:
        self.edges |= {(kernel.name, name) for kernel in waits}
        if step.guarded:
            for stream in sorted({kernel.stream for kernel in waits} - {step.stream}):
                waits = [*waits, self._wait(stream, step.stream)]
        correlation = self._call("cudaLaunchKernel")
        before = self._queue.get(step.stream)
        begin = max([self._now, before.end if before else 0, *(kernel.end for kernel in waits)])
        kernel = Kernel(name, step.stream, begin + 1000 * (1 + step.picks[0] % 7))
        length = (kernel.end - begin) / 1000
        self.profile.kernel(name, begin / 1000, length, correlation, stream=step.stream)
        self._queue[step.stream] = kernel
        return kernel

    def _wait(self, awaited: int, waiting: int) -> Kernel:
        """Make a stream wait for all that another one was given, and record that it does."""
        record = self._call("cudaEventRecord")
        at = self._now
        correlation = self._call("cudaStreamWaitEvent")
        args = {"cuda_sync_kind": "Stream Wait Event", "stream": waiting, "device": 0, "context": 1,
                "correlation": correlation, "wait_on_stream": awaited,
                "wait_on_cuda_event_record_corr_id": record}  # fmt: skip
        self.profile._add("cuda_sync", "Stream Wait Event", 0, waiting, at / 1000, 0.5, args)
        return self._queue[awaited]

    def _call(self, name: str) -> int:
        self._correlation += 1
        thread = THREADS[self._thread]
        self.profile.call(name, self._now / 1000, 0.5, self._correlation, tid=thread)
        self._now += CALL_NS
        return self._correlation

    @contextmanager
    def _operation(
        self, kind: str, inputs: list[Any], outputs: list[Any], parent: int = 2
    ) -> Iterator[int]:
        """One operation, with what it calls inside."""
        self._node += 1
        number, start, place = self._node, self._now, len(self.profile.events)
        self._now += OP_NS
        yield number
        self._now += OP_NS
        name, nothing = f"op {number}", [[] for _ in inputs]
        self.host.op(
            number, name, parent=parent, rf_id=number, tid=self._thread, schema=SCHEMAS[kind],
            inputs=(inputs, nothing, nothing), outputs=(outputs, [], []),
        )  # fmt: skip
        length = (self._now - start) / 1000
        thread = THREADS[self._thread]
        self.profile.op(name, start / 1000, length, rf_id=number, tid=thread)
        # The profiler writes operations as they began.
        self.profile.events.insert(place, self.profile.events.pop())

    def _new(self, device: str) -> Tensor:
        memory = Memory(self._free.pop() if self._free else self._number(), device)
        return self._keep(Tensor(self._number(), memory))

    def _keep(self, tensor: Tensor) -> Tensor:
        tensor.memory.tensors += 1
        self._living.append(tensor)
        return tensor

    def _drop(self, tensor: Tensor) -> None:
        tensor.memory.tensors -= 1
        if tensor.memory.tensors == 0:
            self._free.append(tensor.memory.number)

    def _number(self) -> int:
        self._id += 1
        return self._id

    @staticmethod
    def _on_cpu(tensors: list[Tensor]) -> bool:
        return all(tensor.memory.device == "cpu" for tensor in tensors)


def write(machine: Machine, folder: Path) -> tuple[Path, Path]:
    """Host trace and profile of what a machine ran."""
    return machine.host.write(folder / "host.json"), machine.profile.write(folder / "device.json")


def programs(guards: bool) -> st.SearchStrategy[list[Step]]:
    """Random programs; with `guards`, some operations wait for other streams by events."""
    step = st.builds(
        Step,
        kind=st.sampled_from(["new", "in place", "copy", "out", "list", "view", "empty", "zeros"]),
        thread=st.sampled_from([1, 1, 1, 2]),
        stream=st.sampled_from([7, 7, 20]),
        picks=st.tuples(*[st.integers(0, 30)] * 3),
        on_device=st.booleans(),
        nested=st.booleans(),
        guarded=st.booleans() if guards else st.just(False),
        frees=st.sampled_from([0, 0, 0, 1, 2, 5]),
    )
    return st.lists(step, min_size=1, max_size=30)
