"""Models for benchmarks: large ones, in which operators take the time, and tiny ones."""

# mypy: disable-error-code="attr-defined,import-not-found,no-untyped-call,misc"

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from recording.single import mlp, training_step
from recording.window import Step


def perceptron(width: int, batch: int) -> Step:
    """Three linear layers, a cross entropy and a step of SGD."""
    torch.manual_seed(0)
    model = mlp(width, width, width, 100)
    return training_step(model, torch.randn(batch, width), torch.randint(100, (batch,)))


def compiled(width: int, batch: int) -> Step:
    """The same through the compiler's front end; its back end needs no C++ compiler."""
    torch.manual_seed(0)
    model = torch.compile(mlp(width, width, width, 100), backend="aot_eager")
    return training_step(model, torch.randn(batch, width), torch.randint(100, (batch,)))


def data_parallel(width: int, batch: int) -> Step:
    """The same on each rank, whose gradients are summed as they come."""
    torch.manual_seed(0)
    model = DistributedDataParallel(mlp(width, width, width, 100))
    return training_step(model, torch.randn(batch, width), torch.randint(100, (batch,)))


def tensor_parallel(width: int, batch: int) -> Step:
    """The first layer split by columns over the ranks, the second one by rows."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    model = parallelize_module(mlp(width, width, width, 100), mesh, plan)
    return training_step(model, torch.randn(batch, width), torch.randint(100, (batch,)))


def transformer(width: int, length: int, batch: int, vocabulary: int) -> Step:
    """A language model of two blocks with dropout, and a step of Adam on lists of tensors."""
    torch.manual_seed(0)
    block = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout=0.1, batch_first=True)
    model = nn.Sequential(
        nn.Embedding(vocabulary, width),
        nn.TransformerEncoder(block, 2, enable_nested_tensor=False),
        nn.Linear(width, vocabulary),
    )
    tokens = torch.randint(vocabulary, (batch, length + 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)

    def step() -> None:
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()

    return step


class _Residual(nn.Module):
    """Two convolutions with normalisation, around which the input goes."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)])

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = functional.relu(self.norms[0](self.first(inputs)))
        return functional.relu(self.norms[1](self.second(hidden)) + inputs)


def residual(channels: int, side: int, batch: int) -> Step:
    """Convolutions as in a ResNet: a stem with pooling, two blocks, a classifier."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, channels, 7, stride=2, padding=3),
        nn.BatchNorm2d(channels),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
        _Residual(channels),
        _Residual(channels),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, 100),
    )
    return training_step(model, torch.randn(batch, 3, side, side), torch.randint(100, (batch,)))


def bags(rows: int, width: int, batch: int, each: int) -> Step:
    """A recommendation model: sums of rows of a table, and a perceptron on them."""
    torch.manual_seed(0)
    table = nn.EmbeddingBag(rows, width, mode="sum")
    top = mlp(width, 4 * width, 100)
    indices = torch.randint(rows, (batch * each,))
    offsets = torch.arange(0, batch * each, each)
    labels = torch.randint(100, (batch,))
    optimizer = torch.optim.SGD([*table.parameters(), *top.parameters()], lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(top(table(indices, offsets)), labels).backward()
        optimizer.step()

    return step


LARGE: dict[str, Callable[[], Step]] = {
    "perceptron": partial(perceptron, 1024, 512),
    "compiled perceptron": partial(compiled, 1024, 512),
    "transformer": partial(transformer, 256, 128, 8, 2048),
    "residual": partial(residual, 64, 64, 16),
    "embedding bag": partial(bags, 20000, 128, 4096, 20),
}
"""Operators above 50 us hold nearly all of the time."""
TINY: dict[str, Callable[[], Step]] = {
    "perceptron": partial(perceptron, 32, 16),
    "compiled perceptron": partial(compiled, 32, 16),
    "transformer": partial(transformer, 32, 8, 2, 64),
    "residual": partial(residual, 4, 16, 2),
    "embedding bag": partial(bags, 100, 8, 16, 4),
}
"""The same models, so small that the time is Python's and PyTorch's own."""
RANKS: dict[str, Callable[[], Step]] = {
    "data-parallel perceptron": partial(data_parallel, 1024, 512),
    "tensor-parallel perceptron": partial(tensor_parallel, 1024, 512),
}
"""Large models on several ranks; a process group is there when they are made."""
