"""Pairs of programs that differ in one known way: what is done before and after an intervention."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call,misc,untyped-decorator"

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
import torch.distributed as dist
from torch.nn import functional

from recording.window import Step


@torch.library.custom_op("known::work", mutates_args=())
def known_work(x: torch.Tensor, micros: int) -> torch.Tensor:
    """An operator that keeps the processor busy for a known time."""
    end = time.perf_counter_ns() + 1000 * micros
    while time.perf_counter_ns() < end:
        pass
    return x.clone()


@torch.library.custom_op("known::delay", mutates_args=())
def known_delay(x: torch.Tensor, micros: int) -> torch.Tensor:
    """An operator that waits for a known time and leaves the processor to others."""
    time.sleep(micros / 1e6)
    return x.clone()


@dataclass(frozen=True)
class Shape:
    """A perceptron of equal layers, trained on a batch in `micro_batches` parts.

    `work_us` is what `known::work` takes behind each layer, forward and backward; on rank r
    `slower[r]` times as long. `late_us` is how late a rank asks for each all-reduce.
    """

    layers: int = 4
    hidden: int = 256
    tokens: int = 256
    micro_batches: int = 1
    work_us: int = 0
    late_us: Sequence[int] = (0, 0)
    slower: Sequence[float] = (1.0, 1.0)
    bucket: int = 1
    overlap: bool = True
    link_us: int = 0


class Layer:
    """Two products with a GELU between, whose backward pass is asked for by itself."""

    def __init__(self, hidden: int) -> None:
        self.weights = [
            (torch.randn(a, b) / a**0.5).requires_grad_()
            for a, b in ((hidden, 4 * hidden), (4 * hidden, hidden))
        ]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The output for an input that the layer keeps, for the way back."""
        return torch.mm(functional.gelu(torch.mm(x, self.weights[0])), self.weights[1])


class Training:
    """A step: micro-batches forward and backward, gradients summed over ranks, weights updated."""

    def __init__(self, shape: Shape) -> None:
        torch.manual_seed(0)
        self.shape = shape
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.layers = [Layer(shape.hidden) for _ in range(shape.layers)]
        self.inputs = torch.randn(shape.tokens, shape.hidden)
        self.sums: list[tuple[dist.Work, torch.Tensor, list[torch.Tensor]]] = []
        self.link = Link(shape.link_us) if shape.link_us else None

    def step(self) -> None:
        """One step."""
        for number in range(self.shape.micro_batches):
            with torch.profiler.record_function("micro-batch"):
                self._micro_batch(last=number == self.shape.micro_batches - 1)
        self._wait()
        with torch.no_grad():
            for layer in self.layers:
                with torch.profiler.record_function("update of a layer"):
                    for weight in layer.weights:
                        weight.sub_(weight.grad, alpha=1e-3)
                        weight.grad = None

    def _micro_batch(self, last: bool) -> None:
        x, kept = self.inputs, []
        for layer in self.layers:
            with torch.profiler.record_function("layer forward"):
                x = x.detach().requires_grad_()
                y = layer.forward(x)
                kept.append((x, y))
                x = self._work(y)
        gradient = x.detach() * 1e-3
        ready: list[torch.Tensor] = []
        for place, (layer, (x, y)) in enumerate(zip(self.layers[::-1], kept[::-1], strict=True)):
            with torch.profiler.record_function("layer backward"):
                torch.autograd.backward(y, gradient)
                gradient = self._work(x.grad)
                if last:
                    ready += [weight.grad for weight in layer.weights]
                    if (place + 1) % self.shape.bucket == 0:
                        self._sum(ready)
                        ready = []

    def _work(self, x: torch.Tensor) -> torch.Tensor:
        micros = round(self.shape.work_us * self.shape.slower[self.rank])
        return torch.ops.known.work(x.detach(), micros) if micros else x

    def _sum(self, gradients: list[torch.Tensor]) -> None:
        """Sum gradients over ranks; wait at once where nothing is to overlap."""
        if self.link is not None:
            self.link.send(gradients[0])
        if not dist.is_initialized():
            return
        late = self.shape.late_us[self.rank]
        if late:
            torch.ops.known.delay(gradients[0], late)
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        self.sums.append((dist.all_reduce(flat, async_op=True), flat, gradients))
        if not self.shape.overlap:
            self._wait()

    def _wait(self) -> None:
        for work, flat, gradients in self.sums:
            work.wait()
            parts = flat.split([gradient.numel() for gradient in gradients])
            for gradient, part in zip(gradients, parts, strict=True):
                gradient.copy_(part.view_as(gradient))
        self.sums = []
        if self.link is not None:
            self.link.wait()


class Link:
    """A slow link: a thread that takes a known time for each transfer, one after the other."""

    def __init__(self, micros: int) -> None:
        self._micros = micros
        self._waiting: queue.Queue[torch.Tensor | None] = queue.Queue()
        self._done = threading.Semaphore(0)
        self._sent = 0
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, tensor: torch.Tensor) -> None:
        """Hand a tensor over, and go on."""
        self._sent += 1
        self._waiting.put(tensor)

    def wait(self) -> None:
        """Until all is sent."""
        for _ in range(self._sent):
            self._done.acquire()
        self._sent = 0

    def _run(self) -> None:
        while (tensor := self._waiting.get()) is not None:
            torch.ops.known.delay(tensor, self._micros)
            self._done.release()


@dataclass(frozen=True)
class Intervention:
    """Two programs, and the edits that say what was changed from the first to the second."""

    what: str
    before: Shape
    after: Shape
    edits: tuple[str, ...]
    ranks: int = 2
    shapes: tuple[Shape, ...] = field(default=())
    """Programs whose recordings tell the kernel times that the edits need."""


def step_of(shape: Shape) -> Step:
    """One step of a program."""
    return Training(shape).step


_WORK = Shape(work_us=2000)
_DP = Shape()
_ONE = Shape(layers=4)


def _pair(before: Shape, **after: object) -> tuple[Shape, Shape]:
    return before, replace(before, **after)  # type: ignore[arg-type]


INTERVENTIONS: dict[str, Intervention] = {
    "slow-operator": Intervention(
        "an operator takes twice as long", *_pair(_WORK, work_us=4000),
        ("time:name=known::work=2",),
    ),
    "no-operator": Intervention(
        "an operator is not done", *_pair(_WORK, work_us=0), ("remove:name=known::work=yes",)
    ),
    "slow-link": Intervention(
        "a transfer beside the computation takes three times as long",
        *_pair(Shape(link_us=5000), link_us=15000), ("time:name=known::delay=3",), ranks=1,
    ),
}  # fmt: skip
