"""Stages in a line: each computes on micro-batches that the one before it sends, and backward."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call,misc"

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.profiler import record_function

from recording.device import Machine, slowly
from recording.window import Step


@dataclass(frozen=True)
class Pipeline:
    """All micro-batches forward, then all backward; each stage is a rank.

    On stage s a micro-batch is a product of (tokens, hidden) and (hidden, widths[s]) forward, two
    of these backward, and `known::wait` of `known_us[s]` each time. It takes `slower[s]` times as
    long. Links carry (tokens, hidden).
    """

    widths: Sequence[int]
    known_us: Sequence[int] = (0, 0, 0)
    slower: Sequence[float] = (1.0, 1.0, 1.0)
    micro_batches: int = 4
    tokens: int = 256
    hidden: int = 256
    machine: Machine | None = None

    def step(self) -> Step:
        """One step of it."""
        return _Stage(self).step


class _Stage:
    def __init__(self, shape: Pipeline) -> None:
        self._shape, self._rank = shape, dist.get_rank()
        self._weights = torch.randn(shape.hidden, shape.widths[self._rank])

    def step(self) -> None:
        for number in range(self._shape.micro_batches):
            with record_function("forward"):
                self._pass(number, self._rank - 1, self._rank + 1, products=1)
        for number in range(self._shape.micro_batches):
            with record_function("backward"):
                self._pass(number, self._rank + 1, self._rank - 1, products=2)
        dist.all_reduce(torch.ones(1))

    def _pass(self, number: int, source: int, target: int, products: int) -> None:
        """What one stage does for a micro-batch: receive, compute, send."""
        message = torch.ones(self._shape.tokens, self._shape.hidden)
        if 0 <= source < dist.get_world_size():
            dist.recv(message, source, tag=number)
        with slowly(self._shape.slower[self._rank]):
            for _ in range(products):
                torch.mm(message, self._weights)
            micros = self._shape.known_us[self._rank]
            if micros:
                message = torch.ops.known.wait(message, micros)
        if 0 <= target < dist.get_world_size():
            dist.send(message, target, tag=number)
