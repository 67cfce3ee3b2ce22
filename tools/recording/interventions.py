"""Pairs of programs that differ in one known way: what is done before and after an intervention."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call,misc,untyped-decorator"

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist
from torch.nn import functional
from torch.profiler import record_function

from recording.window import Step


@torch.library.custom_op("known::wait", mutates_args=())
def known_wait(x: torch.Tensor, micros: int) -> torch.Tensor:
    """An operator that takes a known time, as if a device ran it.

    It leaves the processor to the transfers beside it: there are no more processors than ranks.
    """
    time.sleep(micros / 1e6)
    return x.clone()


@dataclass(frozen=True)
class Shape:
    """A perceptron of equal layers, trained on a batch in parts, on all ranks alike.

    `known_us` is what `known::wait` takes behind each layer, forward and backward. On rank r all
    computing takes `slower[r]` times as long. `late_us` is how late a rank asks for each
    all-reduce. Gradients of so many layers as a `bucket` has are summed at once, beside the
    backward pass if they `overlap`.
    """

    layers: int = 4
    hidden: int = 256
    tokens: int = 192
    micro_batches: int = 1
    known_us: int = 0
    late_us: Sequence[int] = (0, 0)
    slower: Sequence[float] = (1.0, 1.0)
    bucket: int = 1
    overlap: bool = True

    def step(self) -> Step:
        """One step of it."""
        return _Training(self).step


class _Layer:
    """Two products with a GELU between, whose backward pass is asked for by itself."""

    def __init__(self, hidden: int) -> None:
        self.weights = [
            (torch.randn(a, b) / a**0.5).requires_grad_()
            for a, b in ((hidden, 4 * hidden), (4 * hidden, hidden))
        ]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mm(functional.gelu(torch.mm(x, self.weights[0])), self.weights[1])


class _Training:
    """Micro-batches forward and backward, gradients summed over ranks, weights updated."""

    def __init__(self, shape: Shape) -> None:
        torch.manual_seed(0)
        self._shape = shape
        self._alone = not dist.is_initialized() or dist.get_world_size() == 1
        self._rank = 0 if self._alone else dist.get_rank()
        self._layers = [_Layer(shape.hidden) for _ in range(shape.layers)]
        self._inputs = torch.randn(shape.tokens, shape.hidden)
        self._sums: list[tuple[dist.Work, torch.Tensor, list[torch.Tensor]]] = []

    def step(self) -> None:
        for number in range(self._shape.micro_batches):
            with record_function("micro-batch"):
                self._micro_batch(last=number == self._shape.micro_batches - 1)
        self._wait()
        for layer in self._layers:
            with record_function("layer update"), self._slowly(), torch.no_grad():
                for weight in layer.weights:
                    weight.sub_(weight.grad, alpha=1e-3)
                    weight.grad = None

    def _micro_batch(self, last: bool) -> None:
        x, kept = self._inputs, []
        for layer in self._layers:
            with record_function("layer forward"), self._slowly():
                x = x.detach().requires_grad_()
                y = layer.forward(x)
                kept.append((x, y))
                x = self._known(y)
        gradient = x.detach() * 1e-3
        ready: list[torch.Tensor] = []
        for place, (layer, (x, y)) in enumerate(zip(self._layers[::-1], kept[::-1], strict=True)):
            with record_function("layer backward"):
                with self._slowly():
                    torch.autograd.backward(y, gradient)
                    gradient = self._known(x.grad)
                ready += [weight.grad for weight in layer.weights] if last else []
                if (place + 1) % self._shape.bucket == 0:
                    self._sum(ready)
                    ready = []

    @contextmanager
    def _slowly(self) -> Iterator[None]:
        """What a slower rank does takes longer in proportion: it sleeps for the rest."""
        began = time.perf_counter()
        yield
        rest = self._shape.slower[self._rank] - 1
        if rest > 0:
            time.sleep(rest * (time.perf_counter() - began))

    def _known(self, x: torch.Tensor) -> torch.Tensor:
        micros = self._shape.known_us
        return torch.ops.known.wait(x.detach(), micros) if micros else x

    def _sum(self, gradients: list[torch.Tensor]) -> None:
        """Sum gradients over ranks; wait at once where nothing is to overlap."""
        if self._alone or not gradients:
            return
        late = self._shape.late_us[self._rank]
        if late:
            time.sleep(late / 1e6)
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        self._sums.append((dist.all_reduce(flat, async_op=True), flat, gradients))
        if not self._shape.overlap:
            self._wait()

    def _wait(self) -> None:
        for work, flat, gradients in self._sums:
            with record_function("layer sum"):
                work.wait()
                parts = flat.split([gradient.numel() for gradient in gradients])
                for gradient, part in zip(gradients, parts, strict=True):
                    gradient.copy_(part.view_as(gradient))
        self._sums = []


@dataclass(frozen=True)
class Line:
    """Two stages in a line, and between them a rank that is the link: it keeps each message for a
    known time.
    """

    link_us: int
    messages: int = 6
    hidden: int = 256
    tokens: int = 192

    def step(self) -> Step:
        """One step of it."""
        torch.manual_seed(0)
        layers = [_Layer(self.hidden) for _ in range(2)]
        inputs = torch.randn(self.tokens, self.hidden)
        rank = dist.get_rank()

        def compute(x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                for layer in layers:
                    x = layer.forward(x)
            return x

        def step() -> None:
            for tag in range(self.messages):
                message = torch.empty_like(inputs)
                if rank == 0:
                    dist.send(compute(inputs), 1, tag=tag)
                    continue
                dist.recv(message, rank - 1, tag=tag)
                if rank == 1:
                    torch.ops.known.wait(message, self.link_us)
                    dist.send(message, 2, tag=tag)
                else:
                    compute(message)
            dist.all_reduce(torch.ones(1))

        return step


@dataclass(frozen=True)
class Intervention:
    """Two programs, and the edits that say what was changed from the first to the second.

    Where edits name a `{table}`, it is fitted to recordings of the first program, and of others,
    `known`, of which the second is none.
    """

    what: str
    before: Shape | Line
    after: Shape | Line
    edits: tuple[str, ...]
    ranks: int = 2
    known: tuple[Shape, ...] = ()


_DEVICE = Shape(hidden=512, tokens=16, known_us=5000)
"""Much to transfer beside operators that leave the processor to that."""
_SMALL = Shape(hidden=64, tokens=16, known_us=8000)

INTERVENTIONS: dict[str, Intervention] = {
    "slow operator": Intervention(
        "one operator takes twice as long",
        _DEVICE, replace(_DEVICE, known_us=10_000),
        ("time:name=known::wait=2",),
    ),
    "no operator": Intervention(
        "one operator is not done",
        _DEVICE, replace(_DEVICE, known_us=0),
        ("remove:name=known::wait=yes",),
    ),
    "slow rank": Intervention(
        "rank 1 computes half as fast again",
        _SMALL, replace(_SMALL, slower=(1.0, 1.5)),
        ("straggler=1:1.5",),
    ),
    "late rank": Intervention(
        "rank 1 asks for each all-reduce 8 ms later",
        _DEVICE, replace(_DEVICE, late_us=(0, 8000)),
        ("delay:name=c10d::allreduce_=8000,1",),
    ),
    "slow link": Intervention(
        "a link between two stages takes three times as long",
        Line(5000), Line(15000),
        ("time:name=known::wait=3",), ranks=3,
    ),
    "bucket size": Intervention(
        "gradients of two layers are summed at once",
        replace(_DEVICE, layers=8), replace(_DEVICE, layers=8, bucket=2),
        ("merge:type=COMM_COLL=2",),
    ),
    "micro-batches": Intervention(
        "gradients of 6 micro-batches are accumulated, not of 3",
        Shape(micro_batches=3), Shape(micro_batches=6),
        ("repeat:name=micro-batch=6",),
    ),
    "layers": Intervention(
        "8 layers instead of 4",
        Shape(layers=4), Shape(layers=8),
        tuple(f"repeat:name=layer {part}=8" for part in ("forward", "backward", "sum", "update")),
    ),
    "batch": Intervention(
        "a batch half as large again",
        Shape(), Shape(tokens=288),
        ("lengths=192:288,{table}",),
        known=(Shape(tokens=144), Shape(tokens=384)),
    ),
    "hidden size": Intervention(
        "320 instead of 256 wide, feed-forward layers four times that",
        Shape(), Shape(hidden=320),
        ("lengths=256:320,1024:1280,{table}",), ranks=1,
        known=(Shape(hidden=224), Shape(hidden=384)),
    ),
    "overlap": Intervention(
        "each all-reduce is waited for at once",
        _DEVICE, replace(_DEVICE, overlap=False),
        ("overlap=off",),
    ),
}  # fmt: skip
"""What is recorded and foretold, by name."""
