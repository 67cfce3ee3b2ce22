"""A perceptron that ranks train together, each on its part of the batch."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call,misc"

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn import functional
from torch.profiler import record_function

from recording.device import Machine, slowly
from recording.window import Step


@dataclass(frozen=True)
class Shape:
    """A perceptron of equal layers, trained on a batch in parts, on all ranks alike.

    `known_us` is what `known::wait` takes on each rank behind each layer, forward and backward. On
    rank r all computing takes `slower[r]` times as long. `late_us` is how late a rank asks for each
    all-reduce. Gradients of so many layers as a `bucket` has are summed at once, beside the
    backward pass if they `overlap`; with `one_by_one`, none is asked for before the last is there.
    """

    layers: int = 4
    hidden: int = 256
    tokens: int = 192
    micro_batches: int = 1
    known_us: Sequence[int] = (0, 0, 0)
    late_us: Sequence[int] = (0, 0, 0)
    slower: Sequence[float] = (1.0, 1.0, 1.0)
    bucket: int = 1
    overlap: bool = True
    one_by_one: bool = False
    machine: Machine | None = None

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
        self._slower = shape.slower[self._rank]
        self._layers = [_Layer(shape.hidden) for _ in range(shape.layers)]
        self._inputs = torch.randn(shape.tokens, shape.hidden)
        self._sums: list[tuple[dist.Work, torch.Tensor, list[torch.Tensor]]] = []

    def step(self) -> None:
        for number in range(self._shape.micro_batches):
            with record_function("micro-batch"):
                self._micro_batch(last=number == self._shape.micro_batches - 1)
        self._take_sums()
        for layer in self._layers:
            with record_function("layer update"), slowly(self._slower), torch.no_grad():
                for weight in layer.weights:
                    weight.sub_(weight.grad, alpha=1e-3)
                    weight.grad = None

    def _micro_batch(self, last: bool) -> None:
        x, kept = self._inputs, []
        for layer in self._layers:
            with record_function("layer forward"), slowly(self._slower):
                x = x.detach().requires_grad_()
                y = layer.forward(x)
                kept.append((x, y))
                x = self._known(y)
        gradient = x.detach() * 1e-3
        ready: list[torch.Tensor] = []
        for place, (layer, (x, y)) in enumerate(zip(self._layers[::-1], kept[::-1], strict=True)):
            with record_function("layer backward"):
                with slowly(self._slower):
                    torch.autograd.backward(y, gradient)
                    gradient = self._known(x.grad)
                ready += [weight.grad for weight in layer.weights] if last else []
                if (place + 1) % self._shape.bucket == 0:
                    self._sum(ready)
                    ready = []

    def _known(self, x: torch.Tensor) -> torch.Tensor:
        micros = self._shape.known_us[self._rank]
        return torch.ops.known.wait(x.detach(), micros) if micros else x

    def _sum(self, gradients: list[torch.Tensor]) -> None:
        """Sum gradients over ranks; wait at once where nothing is to overlap."""
        if self._alone or not gradients:
            return
        if self._shape.one_by_one:
            self._take_sums()
        late = self._shape.late_us[self._rank]
        if late:
            time.sleep(late / 1e6)
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        self._sums.append((dist.all_reduce(flat, async_op=True), flat, gradients))
        if not self._shape.overlap:
            self._take_sums()

    def _take_sums(self) -> None:
        """Wait for the sums that were asked for, and take the gradients out."""
        for work, flat, gradients in self._sums:
            with record_function("layer sum"):
                work.wait()
                parts = flat.split([gradient.numel() for gradient in gradients])
                for gradient, part in zip(gradients, parts, strict=True):
                    gradient.copy_(part.view_as(gradient))
        self._sums = []
